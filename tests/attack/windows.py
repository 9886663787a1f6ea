"""Random programs of many statements, of which some change, rightly and wrongly: what the checker proves by looking at
the statements that differ is run, and asked of the whole, too.

    python -m tests.attack.windows --pairs 10000 --seed 1

A program is a sequence of loops over elements of inputs, outputs and temporaries: some write all of a temporary, some a
part, some only where an input is positive, and some store undefined values. A change is at one or two statements,
anywhere. Nobody here knows whether it is right.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from unittest.mock import patch

from layoutproof.ir.expr import Var
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.notations.rewrite_text import rewrite_text
from layoutproof.ir.rewrite import CellMap, InstanceMap, Rewrite, Witness
from layoutproof.ir.script.reader import loads
from layoutproof.ir.wellformed import check_wellformed
from layoutproof.verify import checker
from layoutproof.verify.program import window
from layoutproof.verify.program.evidence import UNRECORDED
from layoutproof.verify.values.fast_math import IEEE
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status
from tests.attack.judge import judge
from tests.attack.temporaries import Tally, report

SIZE = 8
INPUTS, OUTPUTS = ("A", "B"), ("O", "P")
TEMPORARIES = tuple("CDEFGHKLMNQRSTUVWXYZ")
FEWEST = 2
FORMS = ("loop", "loop", "loop", "reversed", "parallel", "split", "vector")


@dataclass(frozen=True)
class Part:
    """A top-level statement: `target[at] = value` for the elements `e` from `low`, `count` of them.

    `value` and `at` have `{e}` for the element. `guard` is a condition on it, `origin` the statement that it was before
    a change, None for one that is new. `moved` are temporaries that it sees stored the other way round.
    """

    target: str
    at: str
    value: str
    low: int = 0
    count: int = SIZE
    form: str = "loop"
    guard: str = ""
    origin: int | None = None
    moved: frozenset[str] = frozenset()

    def lines(self, number: int) -> list[str]:
        """The statement as text."""
        i, j = f"i{number}", f"j{number}"
        element = f"{i} + {self.low}" if self.low else i
        heads = [f"for {i} in range({self.count}):"]
        if self.form == "reversed":
            element = f"{self.low + self.count - 1} - {i}"
        elif self.form == "split" and self.count % 2 == 0:
            heads = [f"for {i} in range({self.count // 2}):", f"    for {j} in range(2):"]
            element = f"{i} * 2 + {j} + {self.low}"
        elif self.form in ("parallel", "vector"):
            heads = [f"for {i} in T.{'vectorized' if self.form == 'vector' else 'parallel'}({self.count}):"]
        lines = [f"    {head}" for head in heads]
        if self.guard:
            lines.append(f"{'    ' * (len(lines) + 1)}if {self.guard.format(e=f'({element})')}:")
        store = f"{self.target}[{self.at}] = {self.value}".format(e=f"({element})")
        return [*lines, "    " * (len(lines) + 1) + store]

    def element(self, number: int, before: Part) -> IndexMap:
        """The loop variables of the statement as it was, over those that it has."""
        i, j = Var(f"i{number}"), Var(f"j{number}")
        split = self.form == "split" and self.count % 2 == 0
        here = (
            self.low + self.count - 1 - i
            if self.form == "reversed"
            else i * 2 + j + self.low
            if split
            else i + self.low
        )
        old = before.low + before.count - 1 - here if before.form == "reversed" else here - before.low
        if before.form == "split" and before.count % 2 == 0:
            return IndexMap((i, j), (i, j)) if split else IndexMap((i,), (old // 2, old % 2))
        return IndexMap((i, j) if split else (i,), (old,))


Program = list[Part]


def text_of(parts: Sequence[Part], dtype: str, apart: bool) -> str:
    """The function of some statements."""
    buffers = ", ".join(f'{name}: T.Buffer(({SIZE},), "{dtype}")' for name in (*INPUTS, *OUTPUTS))
    lines = ["@T.prim_func", f"def f({buffers}):"]
    if apart:
        lines.append('    T.func_attr({"tirx.noalias": True})')
    lines += [f'    {name} = T.alloc_buffer(({SIZE},), "{dtype}")' for name in TEMPORARIES]
    for number, part in enumerate(parts):
        lines += part.lines(number)
    return "\n".join(lines) + "\n"


class Maker:
    """Random programs, in which most of what is read was written."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.dtype = rng.choice(["int32", "float32"])
        self.written: dict[str, tuple[int, int]] = dict.fromkeys((*INPUTS, *OUTPUTS), (0, SIZE))

    def load(self, low: int, count: int) -> str:
        """A load of something that was written."""
        rng = self.rng
        fits = [n for n, (a, b) in self.written.items() if a <= low and low + count <= b]
        name = rng.choice(fits[-3:] if rng.random() < 0.6 else fits)
        index = "{e}"
        if self.written[name] == (0, SIZE):
            index = rng.choice(["{e}", "{e}", "{e}", f"{SIZE - 1} - {{e}}", "{e} // 2", "0", "({e} + 1) % 8"])
        return f"{name}[{index}]"

    def constant(self) -> str:
        """A number of the type."""
        return f"T.{self.dtype}({self.rng.choice([0, 1, 2, 3])})"

    def part(self) -> Part:
        """A statement, and what it writes."""
        rng = self.rng
        target = rng.choice([*TEMPORARIES, *TEMPORARIES, *OUTPUTS])
        low, count = (0, SIZE) if rng.random() < 0.75 else rng.choice([(0, 4), (2, 4), (1, 7), (3, 5), (0, 6)])
        value = self.load(low, count)
        kind = rng.random()
        if kind < 0.5:
            value = f"{value} + {self.load(low, count) if rng.random() < 0.5 else self.constant()}"
        elif kind < 0.6:
            value = f"T.if_then_else({rng.choice(INPUTS)}[{{e}}] > {self.constant()}, {value}, {self.constant()})"
        if rng.random() < 0.06:
            value = f'T.undef(dtype="{self.dtype}")'
        before = self.written.get(target)
        if before is not None and before[0] <= low and low + count <= before[1] and rng.random() < 0.2:
            value = f"{target}[{{e}}] + {value}"
        guard = f"{rng.choice(INPUTS)}[{{e}}] > {self.constant()}" if rng.random() < 0.08 and before is not None else ""
        if not guard:
            a, b = before if before is not None else (low, low)
            self.written[target] = (min(a, low), max(b, low + count)) if a <= low + count and low <= b else (a, b)
        return Part(target, "{e}", value, low, count, self._form(target, value), guard)

    def _form(self, target: str, value: str) -> str:
        return "loop" if target in value.replace(f"{target}[{{e}}]", "") else self.rng.choice(FORMS)

    def program(self) -> Program:
        """Statements; the last stores to an output."""
        parts = [self.part() for _ in range(self.rng.randint(6, 16))]
        parts.append(Part("O", "{e}", f"{self.load(0, SIZE)} + {self.constant()}"))
        return [replace(part, origin=number) for number, part in enumerate(parts)]


# ---- changes


def _other_form(parts: Program, at: int, rng: Random) -> Program:
    return _put(parts, at, replace(parts[at], form=rng.choice(FORMS)))


def _other_range(parts: Program, at: int, rng: Random) -> Program:
    part = parts[at]
    low, end = part.low + rng.choice([-1, 0, 0]), part.low + part.count + rng.choice([-1, 0, 1])
    low, end = max(low, 0), min(end, SIZE)
    return _put(parts, at, replace(part, low=low, count=end - low)) if end > low else parts


def _swapped(parts: Program, at: int, rng: Random) -> Program:
    other = min(at + rng.choice([1, 1, 2]), len(parts) - 1)
    new = list(parts)
    new[at], new[other] = new[other], new[at]
    return new


def _other_load(parts: Program, at: int, rng: Random) -> Program:
    old, new = (rng.choice([*TEMPORARIES, *INPUTS, *OUTPUTS]) for _ in range(2))
    return _put(parts, at, replace(parts[at], value=parts[at].value.replace(f"{old}[", f"{new}[")))


def _other_value(parts: Program, at: int, rng: Random) -> Program:
    changes = (("+", "-"), ("(1)", "(2)"), ("(0)", "(1)"), ("7 -", "6 -"), ("+ 1", "+ 2"), (">", ">="))
    old, new = rng.choice(changes)
    return _put(parts, at, replace(parts[at], value=parts[at].value.replace(old, new, 1)))


def _other_order(parts: Program, at: int, _: Random) -> Program:
    left, plus, right = parts[at].value.partition(" + ")
    return _put(parts, at, replace(parts[at], value=f"{right}{plus}{left}")) if "(" not in left else parts


def _dropped(parts: Program, at: int, _: Random) -> Program:
    return [*parts[:at], *parts[at + 1 :]]


def _twice(parts: Program, at: int, rng: Random) -> Program:
    later = min(at + rng.choice([0, 0, 1, 3]), len(parts))
    return [*parts[:later], replace(parts[at], origin=rng.choice([None, parts[at].origin])), *parts[later:]]


def _other_guard(parts: Program, at: int, rng: Random) -> Program:
    return _put(parts, at, replace(parts[at], guard=rng.choice(["", "A[{e}] > 0", "{e} < 7"])))


def _other_target(parts: Program, at: int, rng: Random) -> Program:
    new = rng.choice([*TEMPORARIES, *OUTPUTS])
    later = rng.randint(at, len(parts))
    old = parts[at].target
    renamed = [replace(p, value=p.value.replace(f"{old}[", f"{new}[")) for p in parts[at + 1 : later]]
    return [*parts[:at], replace(parts[at], target=new), *renamed, *parts[later:]]


def _turned(parts: Program, at: int, rng: Random) -> Program:
    """A temporary stored the other way round, perhaps not everywhere."""
    name, spared = parts[at].target, rng.choice([None, None, rng.randrange(len(parts))])
    if name not in TEMPORARIES:
        return parts
    new = []
    for number, part in enumerate(parts):
        if number == spared or (f"{name}[" not in part.value and part.target != name):
            new.append(part)
            continue
        value = part.value
        for index in ("{e}", "7 - {e}", "{e} // 2", "0", "({e} + 1) % 8"):
            value = value.replace(f"{name}[{index}]", f"{name}<7 - ({index})>")
        turned = value.replace("<", "[").replace(">", "]") if f"{name}<" in value and ">=" not in value else value
        if " > " in part.value or f"{name}<" not in value:
            turned = value.replace(f"{name}<", f"{name}[").replace(")>", ")]")
        at_ = f"7 - ({part.at})" if part.target == name else part.at
        new.append(replace(part, value=turned, at=at_, moved=part.moved | {name}))
    return new


def _decided(parts: Program, at: int, rng: Random) -> Program:
    """The same value on both sides of a choice, by something that may be undefined."""
    name, value = rng.choice([*TEMPORARIES, *OUTPUTS]), parts[at].value
    named = [part.target for part in parts[:at] if f"{part.target}[" in value] if rng.random() < 0.7 else []
    load = f"{rng.choice(named) if named else name}[{{e}}]"
    return _put(parts, at, replace(parts[at], value=f"T.if_then_else({load} == {load}, {value}, {value})"))


def _put(parts: Program, at: int, part: Part) -> Program:
    return [*parts[:at], part, *parts[at + 1 :]]


CHANGES: tuple[Callable[[Program, int, Random], Program], ...] = (
    _other_form, _other_form, _other_form, _other_range, _swapped, _swapped, _other_load, _other_value, _other_order,
    _other_order, _dropped, _twice, _other_guard, _other_target, _turned, _turned, _decided, _decided,
)  # fmt: skip


def pair(rng: Random) -> Rewrite | None:
    """A program, and one that differs from it in a few statements; None for texts that are no programs."""
    maker = Maker(rng)
    old = maker.program()
    at = rng.randrange(len(old))
    new: Program = old
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        new = rng.choice(CHANGES)(new, min(at + rng.choice([0, 0, 1]), len(new) - 1), rng)
    apart = rng.random() < 0.8
    functions = [loads(text_of(parts, maker.dtype, apart), name="pair") for parts in (old, new)]
    if any(check_wellformed(f) for f in functions):
        return None
    turned = frozenset[str]().union(*(part.moved for part in new))
    cells = tuple(
        CellMap(f"{name}_data", f"{name}_data", parse_index_map("lambda c: [7 - c]")) for name in sorted(turned)
    )
    if rng.random() < 0.1:
        cells = ()
    maps = [
        InstanceMap(number, part.origin, None if part.origin is None else part.element(number, old[part.origin]))
        for number, part in enumerate(new)
    ]
    return Rewrite(functions[0], functions[1], Witness(tuple(maps), cells))


# ---- the attack


def attack(seed: int, pairs: int, seconds: float = float("inf"), fewest: int = FEWEST) -> Tally:
    """Random pairs, checked in windows and judged, until there are enough or the time is over. Wrong are also pairs
    that the check of the whole refutes.
    """
    rng, tally, start = Random(seed), Tally(), time.monotonic()
    with patch.object(window, "FEWEST", fewest):
        for _ in range(pairs):
            if time.monotonic() - start > seconds:
                break
            rewrite = pair(rng)
            if rewrite is None:
                tally.counts["no pair"] += 1
            elif rewrite.old == rewrite.new and not rewrite.witness.cells:
                tally.counts["nothing changed"] += 1
            else:
                _try(rewrite, rng, tally)
    return tally


def _try(rewrite: Rewrite, rng: Random, tally: Tally) -> None:
    tally.counts["pairs"] += 1
    found = window.try_window(rewrite)
    if found is None:
        tally.counts["no window"] += 1
        return
    tally.counts["windows"] += 1
    tally.counts["shared statements"] += len(found.shared)
    checked = checker._prove_in_window(rewrite, None)
    differ = judge(rewrite, rng, trials=24 if checked is not None else 3)
    if checked is None:
        outcome = "runs differ" if differ.difference is not None else "runs agree" if differ.valid else "no valid run"
        tally.counts[f"left to the whole, {outcome}"] += 1
        return
    tally.counts["proved in a window"] += 1
    whole = worst(v.status for v in checker._prove_whole(rewrite, None, IEEE, UNRECORDED).verdicts)
    tally.counts[f"proved in a window, the whole is {whole}"] += 1
    if differ.difference is not None or whole in (Status.REFUTED, Status.VACUOUS):
        tally.wrong.append(f"{rewrite_text(rewrite)}\n# {differ.difference}\n# the whole: {whole}")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    return report("random changes of long programs, checked where they are", attack, arguments)


if __name__ == "__main__":
    sys.exit(main())
