"""Random pairs of programs that hold different things in temporaries: some values are stored and loaded again in one of
them and written out in the other, with and without a mistake. The checker says what it says; the interpreter says what
is so.

    python -m tests.attack.temporaries --pairs 10000 --seed 1

A pair is a sequence of steps over 8 elements, or over n: values of stages, outputs, and writes to inputs in between.
Each program holds some stages in memory, in a loop of some form, and has the others in the place of their loads.
Whether that is right depends on the order; nobody here knows, and nobody has to.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.notations.rewrite_text import parse_litmus
from layoutproof.ir.wellformed import check_wellformed
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.values.fast_math import ALL, IEEE, FastMath, FastMathSet
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status
from tests.attack.campaign import assumed_of
from tests.attack.judge import judge
from tests.attack.steps import Node, Step, Store, Version, Writer

MOST_TEXT = 5_000
"""Larger pairs, and those that nest quotients more deeply, take integer sets minutes."""
INDICES = ("{i}", "{i}", "{i}", "{i}", "{i}", "{last} - {i}", "{last} - {i}", "{further}", "{i} // 2")
MOST_QUOTIENTS = 24
LOOPS = ("loop", "loop", "reversed", "tiled", "vector", "parallel")
FORMS = (*LOOPS, "split", "twice", "scalar", "rows")
FAST_MATH: tuple[FastMathSet, ...] = (
    ALL,
    IEEE,
    IEEE,
    frozenset({FastMath.NSZ}),
    frozenset({FastMath.NNAN, FastMath.NSZ}),
)


# ---- making


class Maker:
    """Random steps and versions over one type."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.dtype = rng.choice(["float32", "float32", "float32", "int32", "float16"])
        self.undefined = rng.random() < 0.05
        self.symbolic = rng.random() < 0.25

    def leaf(self, names: Sequence[str]) -> Node:
        """A load, now and then a constant."""
        rng = self.rng
        if self.undefined and rng.random() < 0.15:
            return Node("undef")
        if rng.random() < 0.12:
            return Node("const", rng.choice(["0", "0", "1", "2", "-1"]))
        return Node("load", rng.choice(names), (Node("index", rng.choice(INDICES)),))

    def value(self, names: Sequence[str], depth: int) -> Node:
        """A value over loads of some names."""
        rng = self.rng
        if depth == 0 or rng.random() < 0.15:
            return self.leaf(names)
        kinds = ["+", "+", "-", "*", "*", "max", "min", "select", "lazy"]
        kinds += ["call", "/", "negative"] if self.dtype != "int32" else ["//", "narrow"]
        kind = rng.choice(kinds)
        count = {"call": 1, "negative": 1, "narrow": 1, "select": 3, "lazy": 3}.get(kind, 2)
        return Node(
            kind,
            rng.choice(["exp", "sqrt"]) if kind == "call" else "",
            tuple(self.value(names, depth - 1) for _ in range(count)),
        )

    def steps(self) -> tuple[Step, ...]:
        """Stages, outputs and writes to inputs in an order in which what is loaded was stored."""
        rng, made, names = self.rng, list[Step](), ["A", "D"]
        stages = rng.choice([1, 1, 2, 2, 3])
        for number in range(stages):
            others = [n for n in names if n.startswith("T")]
            pool = [*names, *others, *others]
            narrow = {"float32": "float16", "int32": "int8", "float16": "float16"}[self.dtype]
            dtype = narrow if rng.random() < 0.12 else self.dtype
            times = rng.choice([2, 3]) if rng.random() < 0.15 else 0
            made.append(Step(f"T{number}", self.value(pool, rng.choice([1, 1, 2])), dtype, times, rng.random() < 0.06))
            names.append(f"T{number}")
            if rng.random() < 0.3:
                made.append(Step("A", self.value(["A", "D"], 1), self.dtype))
        last = [n for n in names if n.startswith("T")]
        made.append(Step("B", self.value([*last, *last, "A"], rng.choice([1, 2])), self.dtype))
        if rng.random() < 0.4:
            made.append(Step("C", self.value([*last, "A", "B"], 1), self.dtype))
        return tuple(made)

    def version(self, steps: tuple[Step, ...]) -> Version:
        """A program that does these steps."""
        rng = self.rng
        stages = sorted({s.target for s in steps if s.target.startswith("T")})
        held = frozenset(name for name in stages if rng.random() < 0.55)
        forms = {name: rng.choice(FORMS if name in held else LOOPS) for name in [*stages, "A", "B", "C"]}
        if self.symbolic:
            forms = {name: {"vector": "loop", "rows": "scalar"}.get(form, form) for name, form in forms.items()}
        fused = frozenset(k for k in range(1, len(steps)) if rng.random() < 0.25)
        return Version(steps, held, forms, fused)


# ---- mistakes, or what may be one


def _mutated(node: Node, rng: Random) -> Node:
    """The value with something changed somewhere."""
    if node.kind == "load" and rng.random() < 0.6:
        choice = rng.random()
        if choice < 0.7:
            return replace(node, parts=(Node("index", rng.choice(INDICES)),))
        return replace(node, name=rng.choice(["A", "D"]))
    if not node.parts or node.kind == "load":
        return replace(node, name=rng.choice(["0", "1", "2"])) if node.kind == "const" else node
    if node.kind in "+-*" and rng.random() < 0.3:
        return replace(node, kind=rng.choice("+-*")) if rng.random() < 0.5 else replace(node, parts=node.parts[::-1])
    at = rng.randrange(len(node.parts))
    return replace(node, parts=(*node.parts[:at], _mutated(node.parts[at], rng), *node.parts[at + 1 :]))


def changed(version: Version, rng: Random) -> Version:
    """The program with one thing done otherwise."""
    steps = list(version.steps)
    at = rng.randrange(len(steps))
    match rng.choice(["value", "value", "order", "data", "type", "zero", "extra", "times", "form"]):
        case "value":
            steps[at] = replace(steps[at], value=_mutated(steps[at].value, rng))
        case "order" if at > 0:
            steps[at - 1], steps[at] = steps[at], steps[at - 1]
        case "data" if steps[at].target.startswith("T"):
            steps[at] = replace(steps[at], data=not steps[at].data)
        case "type" if steps[at].target.startswith("T"):
            steps[at] = replace(steps[at], dtype=rng.choice(["float16", "int8", "float32"]))
        case "zero":
            steps[at] = replace(steps[at], value=Node(rng.choice("+-"), "", (steps[at].value, Node("const", "0"))))
        case "extra":
            name = rng.choice(sorted(version.held) or ["B"])
            store = rng.choice(
                [f"{name}[3] = {name}[3] + {name}[3]", f"{name}[0] = {name}[1]", f"{name}[7] = {name}[7]"]
            )
            return replace(version, extra=((at, store),))
        case "times":
            steps[at] = replace(steps[at], times=rng.choice([0, 2, 3]))
        case _:
            return replace(
                version,
                forms={**version.forms, steps[at].target: rng.choice(("loop", "reversed", "tiled", "split", "scalar"))},
            )
    return replace(version, steps=tuple(steps))


# ---- pairs


_BACK = {"reversed": "[{last} - ({e})]", "tiled": "[({e}) // 4, ({e}) % 4]"}


def pair_text(rng: Random) -> tuple[str, FastMathSet, bool]:
    """The text of a random pair with its witness, the fast-math assumptions to ask under, and whether something was
    changed on purpose.
    """
    maker = Maker(rng)
    steps = maker.steps()
    old = maker.version(steps)
    new = maker.version(steps)
    wrong = rng.random() < 0.6
    if wrong:
        new = changed(new, rng)
    before, after = (Writer(version, maker.dtype, symbolic=maker.symbolic) for version in (old, new))
    texts = before.text("before"), after.text("after")
    lines = ["# about: a random pair"]
    for number, store in enumerate(after.stores):
        lines.append(f"# theta: {number} -> {_counterpart(store, after, before, rng)}")
    return "\n".join([*lines, "# from tvm.script import tirx as T", "", *texts]), rng.choice(FAST_MATH), wrong


def _counterpart(store: Store, after: Writer, before: Writer, rng: Random) -> str:
    """What the witness says of a store: the same step of the old program, where it has one store, or nothing."""
    if store.step is None:
        return "none"
    step = after.version.steps[store.step]
    same = [k for k, s in enumerate(before.version.steps) if s.target == step.target]
    position = [k for k, s in enumerate(after.version.steps) if s.target == step.target].index(store.step)
    found = [
        (n, s)
        for n, s in enumerate(before.stores)
        if s.step is not None and position < len(same) and s.step == same[position]
    ]
    if len(found) != 1 or (step.target.startswith("T") and rng.random() < 0.6):
        return "none"
    number, theirs = found[0]
    form = before.version.forms[step.target] if len(theirs.loops) > 1 or theirs.element != theirs.loops[0] else "loop"
    back = _BACK.get(form, "[{e}]").format(e=store.element, last=before.last)
    return f"{number}: lambda {', '.join(store.loops)}: {back}"


# ---- the attack


@dataclass
class Tally:
    """What came of some pairs. `wrong` are texts of pairs that were proved and that a run tells apart."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)


def attack(seed: int, pairs: int, seconds: float = float("inf")) -> Tally:
    """Random pairs, checked and judged, until there are enough or the time is over."""
    rng, tally, start = Random(seed), Tally(), time.monotonic()
    for _ in range(pairs):
        if time.monotonic() - start > seconds:
            break
        text, fast_math, wrong = pair_text(rng)
        if len(text) < MOST_TEXT and text.count("//") + text.count("%") < MOST_QUOTIENTS:
            _try(text, fast_math, wrong, rng, tally)
    return tally


def _try(text: str, fast_math: FastMathSet, wrong: bool, rng: Random, tally: Tally) -> None:
    try:
        case = parse_litmus(text, "pair")
        if [*check_wellformed(case.rewrite.old), *check_wellformed(case.rewrite.new)]:
            raise ValueError("not well-formed")
        where = assumed_of(case.rewrite)
        verdicts = prove_rewrite(case.rewrite, where, allowed=fast_math).verdicts
    except (LayoutproofError, ValueError, TypeError):
        tally.counts["no pair"] += 1
        return
    tally.counts["pairs"] += 1
    status = worst(v.status for v in verdicts)
    used = frozenset(name for v in verdicts for name in v.strictness)
    accepted = status in (Status.PROVED, Status.VACUOUS)
    found = judge(case.rewrite, rng, trials=24 if accepted else 6, where=where, fast_math=used)
    kind = "changed" if wrong else "unchanged"
    differ = found.difference is not None
    tally.counts[
        f"{kind}, {'runs differ' if differ else 'runs agree' if found.valid else 'no valid run'}, {status}"
    ] += 1
    if accepted:
        tally.counts["proved"] += 1
        tally.counts["proved through loads"] += any("flow" in v.engine for v in verdicts)
        if differ:
            tally.wrong.append(f"{text}\n# {found.difference}\n# under {sorted(used)}")
    elif not differ and found.valid:
        reason = next(v.reason for v in verdicts if v.status is not Status.PROVED)
        tally.open.append(f"{text}\n# {reason}")


def report(what: str, attacked: Callable[[int, int, float], Tally], arguments: Sequence[str] | None) -> int:
    """A command that attacks and prints what came of it; its exit code."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--show", type=int, default=3)
    options = parser.parse_args(arguments)
    tally = attacked(options.seed, options.pairs, options.seconds)
    for name, count in sorted(tally.counts.items()):
        print(f"{count:8}  {name}")
    for text in tally.wrong[: options.show]:
        print("\nPROVED WRONGLY\n", text)
    for text in tally.open[: options.show]:
        print("\nleft open\n", text)
    return 1 if tally.wrong else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    return report("random pairs of programs with temporaries", attack, arguments)


if __name__ == "__main__":
    sys.exit(main())
