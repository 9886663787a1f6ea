"""Comparing three readings of one text: the interpreter's, that of the generated C, and TVM's."""

from __future__ import annotations

import ast
import re
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp.run import same_values
from layoutproof.lowering.codegen.c import emit_c
from layoutproof.lowering.runtime.enclosure import Enclosed, outside
from tests.oracle.messages import Job
from tests.oracle.ours import Interpreted, build_library, interpret, lowered
from tests.oracle.runner import Outcome, Runner
from tests.oracle.tolerance import enclosures
from tests.random.typed_programs import Program

Array = np.ndarray[Any, Any]

BY_CHOICE = ("TVM takes 32 bits of a number", "float16 and bfloat16 meet", "bfloat16 and float16 meet")
"""What is refused here and read by TVM, in the table of `docs/reference/programs.md`, by the words of the message."""


SIMPLIFIED = "compared with TVM without its simplifier, which changes the result"
"""What TVM means by a text is what it runs before it replaces expressions by what it deduces to be the same: where only
that makes a difference, there is none.
"""


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
        compiled = (
            self.run_c({k: i for k, i in ours.items() if any(o is not None for o in i.outputs)}, keyed) if c else {}
        )
        found = {key: judged(p, ours[key], theirs.get(key), compiled.get(key)) for key, p in keyed.items()}
        again = [job for job in jobs if any(d.kind.startswith("TVM") for d in found[job.key][1])]
        plain = self.tvm.run([replace(job, function=without_wraps(job.function)) for job in again], plain=True)
        for key in (job.key for job in again):
            differences = judged(keyed[key], ours[key], plain[key], compiled.get(key))[1]
            if not any(d.kind.startswith("TVM") for d in differences):
                found[key] = SIMPLIFIED, differences
        return Compared(
            Counter(state for state, _ in found.values()), tuple(d for _, each in found.values() for d in each)
        )

    def run_c(self, ours: Mapping[str, Interpreted], keyed: Mapping[str, Program]) -> dict[str, Outcome]:
        """The outcomes of the generated C."""
        sources, found = {}, {}
        for key, interpreted in ours.items():
            assert interpreted.func is not None
            try:
                sources[key] = emit_c(lowered(interpreted.func))
            except LayoutproofError as problem:
                found[key] = Outcome(None, f"no C: {problem}")
        if not sources:
            return found
        with tempfile.TemporaryDirectory(prefix="oracle-") as folder:
            library = build_library(sources, Path(folder))
            jobs = [Job(key, key, valid_runs(keyed[key], ours[key])) for key in sources]
            return found | self.native.run(jobs, str(library))


class _HiddenWraps(ast.NodeTransformer):
    """Conversions to integers of 8 to 64 bits, as bits of the other sign that are read as that integer."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """`T.Cast(type, e)`, `T.cast(e, type)` and `T.int8(e)`."""
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Attribute(ast.Name("T"), "Cast"), [ast.Constant(str(dtype)), value], []):
                pass
            case ast.Call(ast.Attribute(ast.Name("T"), "cast"), [value, ast.Constant(str(dtype))], []):
                pass
            case ast.Call(ast.Attribute(ast.Name("T"), str(dtype)), [value], []) if not isinstance(value, ast.Constant):
                pass
            case _:
                return node
        if re.fullmatch(r"u?int(8|16|32|64)", dtype) is None:
            return node
        other = dtype[1:] if dtype.startswith("u") else f"u{dtype}"
        return ast.parse(f"T.reinterpret('{dtype}', T.Cast('{other}', {ast.unparse(value)}))", mode="eval").body


def without_wraps(text: str) -> str:
    """A program of which TVM deduces nothing about converted integers: it takes the bounds of what was converted, as if
    nothing wrapped.
    """
    return ast.unparse(_HiddenWraps().visit(ast.parse(text)))


def valid_runs(program: Program, ours: Interpreted) -> list[tuple[Array, ...]]:
    """The runs on which the interpreter finds no fault; none where it did not read the text."""
    if ours.func is None:
        return []
    return [run for run, output in zip(program.runs, ours.outputs, strict=True) if output is not None]


def judged(
    program: Program, ours: Interpreted, theirs: Outcome | None, compiled: Outcome | None
) -> tuple[str, list[Difference]]:
    """The state of one program (compared, faulty, refused by whom), and its differences."""
    found: list[Difference] = []
    if ours.func is None:
        if theirs is not None and theirs.outputs is not None and not any(words in ours.reason for words in BY_CHOICE):
            found.append(Difference(f"only TVM reads: {ours.reason.split('error')[-1][:80]}", ours.reason, program))
            return "read by TVM only", found
        return "read by neither", found
    expected = [output for output in ours.outputs if output is not None]
    if not expected:
        return "faults on every input", found
    if compiled is not None:
        found += _against("C", program, expected, compiled)
    assert theirs is not None
    if theirs.outputs is None and not theirs.died:
        return f"refused by TVM: {failure_kind(theirs.reason)}", found
    if "math" not in program.features or theirs.outputs is None:
        return "compared", [*found, *_against("TVM", program, expected, theirs)]
    between = enclosures(lowered(ours.func), valid_runs(program, ours))
    if between is None:
        return "compared without TVM", found
    return "compared within bounds", [*found, *_outside(program, between, theirs.outputs)]


def _against(who: str, program: Program, expected: Sequence[Sequence[Array]], outcome: Outcome) -> list[Difference]:
    if outcome.outputs is None:
        return [
            Difference(
                f"{who} {'died' if outcome.died else 'refuses'}: {failure_kind(outcome.reason)}",
                outcome.reason,
                program,
            )
        ]
    for number, (arrays, others) in enumerate(zip(expected, outcome.outputs, strict=True)):
        for cell, array, other in zip(program.parameters, arrays, others, strict=True):
            wrong = ~same_values(array, other)
            if wrong.any():
                at = tuple(int(k) for k in np.argwhere(wrong)[0])
                what = f"run {number}, {cell.name}{list(at)}: {array[at]!r} by the interpreter, {other[at]!r} by {who}"
                return [Difference(f"{who} differs in {cell.dtype}", what, program)]
    return []


def _outside(
    program: Program, between: Sequence[Sequence[Enclosed]], outputs: Sequence[Sequence[Array]]
) -> list[Difference]:
    """The first cell that TVM puts outside of its enclosure."""
    for number, (intervals, others) in enumerate(zip(between, outputs, strict=True)):
        for cell, interval, other in zip(program.parameters, intervals, others, strict=True):
            wrong = outside(other, interval)
            if wrong.any():
                at = tuple(int(k) for k in np.argwhere(wrong)[0])
                what = (
                    f"run {number}, {cell.name}{list(at)}: {other[at]!r} by TVM, not in {interval.low[at]!r} .. "
                    f"{interval.high[at]!r}"
                )
                return [Difference(f"TVM is out of bounds in {cell.dtype}", what, program)]
    return []


def failure_kind(reason: str) -> str:
    """A reason without the numbers and names that differ from program to program."""
    return "".join("#" if c.isdigit() else c for c in reason)[:90]
