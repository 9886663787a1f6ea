"""Comparing three readings of one text: the interpreter's, that of the generated C, and TVM's."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp.run import same_values
from tests.oracle.messages import Job
from tests.oracle.ours import Interpreted, build_library, emitted, interpret
from tests.oracle.programs import Program
from tests.oracle.runner import Outcome, Runner

Array = np.ndarray[Any, Any]

MATH_BOUND = 64
"""Units in the last place by which TVM's math functions, and what is made of them, may differ from ours in programs that call them."""

BY_CHOICE = ("LP115",)
"""What is refused here and read by TVM, in the table of `docs/reference/programs.md`: numbers of which TVM takes 32 bits."""


@dataclass(frozen=True)
class Difference:
    """Two readings that differ: which two (`kind`), in what, and by which program."""

    kind: str
    what: str
    program: Program


@dataclass(frozen=True)
class Compared:
    """What came of a batch: programs by outcome, and the differences."""

    counts: Mapping[str, int]
    differences: tuple[Difference, ...]


class Comparer:
    """Compares batches of programs. It holds the processes that run machine code."""

    def __init__(self) -> None:
        self.tvm, self.native = Runner(), Runner()

    def close(self) -> None:
        """End the processes."""
        for runner in (self.tvm, self.native):
            runner.close()
            runner.errors.close()

    def compare(self, programs: Sequence[Program], *, c: bool = True) -> Compared:
        """Run each program three ways, on those of its inputs on which it does not fault."""
        keyed = {f"p{number}": program for number, program in enumerate(programs)}
        ours = {key: interpret(p.text, p.runs, plain=p.seed % 8 == 0) for key, p in keyed.items()}
        jobs = [Job(key, p.text, valid_runs(p, ours[key])) for key, p in keyed.items()]
        theirs = self.tvm.run([job for job in jobs if job.runs or ours[job.key].func is None])
        compiled = self.run_c({k: i for k, i in ours.items() if any(o is not None for o in i.outputs)}, keyed) if c else {}
        counts: dict[str, int] = {}
        differences: list[Difference] = []
        for key, program in keyed.items():
            state, found = judged(program, ours[key], theirs.get(key), compiled.get(key))
            counts[state] = counts.get(state, 0) + 1
            differences += found
        return Compared(counts, tuple(differences))

    def run_c(self, ours: Mapping[str, Interpreted], keyed: Mapping[str, Program]) -> dict[str, Outcome]:
        """The outcomes of the generated C."""
        sources, found = {}, {}
        for key, interpreted in ours.items():
            assert interpreted.func is not None
            try:
                sources[key] = emitted(interpreted.func)
            except LayoutproofError as problem:
                found[key] = Outcome(None, f"no C: {problem}")
        if not sources:
            return found
        with tempfile.TemporaryDirectory(prefix="oracle-") as folder:
            library = build_library(sources, Path(folder))
            jobs = [Job(key, key, valid_runs(keyed[key], ours[key])) for key in sources]
            return found | self.native.run(jobs, str(library))


def valid_runs(program: Program, ours: Interpreted) -> list[tuple[Array, ...]]:
    """The runs on which the interpreter finds no fault; none where it did not read the text."""
    if ours.func is None:
        return []
    return [run for run, output in zip(program.runs, ours.outputs, strict=True) if output is not None]


def judged(program: Program, ours: Interpreted, theirs: Outcome | None, compiled: Outcome | None) -> tuple[str, list[Difference]]:
    """The state of one program (compared, faulty, refused by whom), and its differences."""
    found: list[Difference] = []
    if ours.func is None:
        if theirs is not None and theirs.outputs is not None and not any(f"[{code}]" in ours.reason for code in BY_CHOICE):
            found.append(Difference(f"only TVM reads: {ours.reason.split('error')[-1][:80]}", ours.reason, program))
            return "read by TVM only", found
        return "read by neither", found
    expected = [output for output in ours.outputs if output is not None]
    if not expected:
        return "faults on every input", found
    if compiled is not None:
        found += _against("C", program, expected, compiled, bound=0)
    assert theirs is not None
    if theirs.outputs is None and not theirs.died:
        return f"refused by TVM: {failure_kind(theirs.reason)}", found
    if "math" in program.features and not theirs.died:
        return "compared without TVM", found
    found += _against("TVM", program, expected, theirs, bound=0)
    return "compared", found


def _against(who: str, program: Program, expected: Sequence[Sequence[Array]], outcome: Outcome, bound: int) -> list[Difference]:
    if outcome.outputs is None:
        return [Difference(f"{who} {'died' if outcome.died else 'refuses'}: {failure_kind(outcome.reason)}", outcome.reason, program)]
    for number, (arrays, others) in enumerate(zip(expected, outcome.outputs, strict=True)):
        for cell, array, other in zip(program.parameters, arrays, others, strict=True):
            wrong = ~(same_values(array, other) | _near(array, other, bound))
            if wrong.any():
                at = tuple(int(k) for k in np.argwhere(wrong)[0])
                what = f"run {number}, {cell.name}{list(at)}: {array[at]!r} by the interpreter, {other[at]!r} by {who}"
                return [Difference(f"{who} differs in {cell.dtype}", what, program)]
    return []


def _near(a: Array, b: Array, bound: int) -> Array:
    """Whether floats are at most so many units in the last place apart."""
    if bound == 0 or a.dtype.kind in "biu":
        return np.zeros(a.shape, dtype=np.bool_)
    x, y = _ordered(a), _ordered(b)
    return np.asarray(np.abs(x - y) <= bound, dtype=np.bool_)


def _ordered(values: Array) -> Array:
    """The bits of floats as integers in the order of the floats, both zeros at zero."""
    bits = values.view(f"i{values.dtype.itemsize}").astype(object)
    return np.where(bits < 0, -(bits + (1 << (8 * values.dtype.itemsize - 1))), bits)


def failure_kind(reason: str) -> str:
    """A reason without the numbers and names that differ from program to program."""
    return "".join("#" if c.isdigit() else c for c in reason)[:90]
