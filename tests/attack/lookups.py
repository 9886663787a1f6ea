"""Random pairs of programs that look up a table by the elements of an input, with and without a mistake: which
elements, under which condition, in which order, beside what else. Of what is proved, no run may fault or differ where
the old program's does not fault.

    python -m tests.attack.lookups --pairs 2000 --seed 1
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random

import numpy as np

from layoutproof.ir.interp import Fault, run, same_values
from layoutproof.ir.notations.rewrite_text import parse_rewrite
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.verdict.verdict import Status

TABLE, LENGTH = 6, 8
PLACES = ("{i}", "{i}", "{i}", "7 - {i}", "{i} // 2", "({i} + 3) % 8", "T.min({i} + 1, 7)", "0")
DECIDES = (
    "I[{p}]",
    "I[{p}]",
    "I[{p}]",
    "T.max(I[{p}], 0)",
    "T.min(I[{p}], 5)",
    "I[{p}] // 2",
    "I[{p}] % 7",
    "I[{p}] + 1",
    "J[I[{p}]]",
)
CHOICES = (
    "{v}",
    "{v}",
    "{v}",
    "T.if_then_else({i} < {g}, {v}, T.float32(0))",
    "T.if_then_else(D[{i}] > 0, {v}, T.float32(0))",
    "T.Select({i} < {g}, {v}, T.float32(0))",
    "T.Select(D[{i}] > 0, {v}, T.float32(0))",
)
GUARDS = ("", "", "", "if {i} < {g}:", "if {g} <= {i}:", "if D[{i}] > 0:", "if I[{i}] >= 0:")
BOX = f'A: T.Buffer(({TABLE},), "float32"), B: T.Buffer(({LENGTH},), "float32"), ' + ", ".join(
    f'{name}: T.Buffer(({LENGTH},), "int32")' for name in "IJD"
)


@dataclass
class Tally:
    """What became of the pairs; `wrong` are texts of those that are proved and that a run tells apart."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Loop:
    """One loop that looks up and stores."""

    extent: int
    place: str
    decides: str
    choice: str
    guard: str
    bound: int
    tiled: bool

    def lines(self, target: str) -> list[str]:
        """Its text."""
        i = "(io * 4 + ii)" if self.tiled else "i"
        index = self.decides.format(p=self.place.format(i=i))
        value = self.choice.format(v=f"A[{index}]", i=i, g=self.bound)
        guard = self.guard.format(i=i, g=self.bound)
        head = f"for io, ii in T.grid({self.extent // 4}, 4):" if self.tiled else f"for i in range({self.extent}):"
        inner = (
            [f"{guard}" if guard else "if True:", f"    {target}[{i}] = {value}"]
            if guard
            else [f"{target}[{i}] = {value}"]
        )
        return [head, *(f"    {line}" for line in inner)]


def _loop(rng: Random) -> Loop:
    extent = rng.choice((8, 8, 8, 4))
    place, decides, choice, guard = (rng.choice(words) for words in (PLACES, DECIDES, CHOICES, GUARDS))
    return Loop(extent, place, decides, choice, guard, rng.randrange(1, 8), rng.random() < 0.3)


def _changed(loop: Loop, rng: Random) -> Loop:
    name = rng.choice(("extent", "place", "decides", "choice", "guard", "bound", "tiled", "tiled", "tiled"))
    return replace(loop, **{name: getattr(_loop(rng), name)})


def pair(rng: Random) -> str:
    """A rewrite's text: a loop and what became of it, in some with a write to the input before, in some with a loop
    more for nobody.
    """
    old = _loop(rng)
    new = old if rng.random() < 0.3 else _changed(old, rng)
    outer = {False: "i", True: "io, ii"}
    form = {
        (False, False): "[i]",
        (True, True): "[io, ii]",
        (True, False): "[4*io + ii]",
        (False, True): "[i // 4, i % 4]",
    }
    main = f"lambda {outer[new.tiled]}: {form[new.tiled, old.tiled]}"
    before, after = [old.lines("B")], [(new.lines("B"), main)]
    if rng.random() < 0.4:
        more = _changed(old, rng) if rng.random() < 0.7 else _loop(rng)
        after.insert(rng.randrange(2), (more.lines("C"), ""))
    if rng.random() < 0.15:
        before.insert(0, ["I[0] = 2"])
        after.insert(0, (["I[0] = 2"], "lambda: []"))
    kept = [number for number, (_, form) in enumerate(after) if form]
    header = [f"# theta: {n} -> {f'{kept.index(n)}: {form}' if form else 'none'}" for n, (_, form) in enumerate(after)]
    text = [*header, "# from tvm.script import tirx as T", ""]
    temporary = ["C = T.sblock_alloc_buffer((8,), 'float32')"]
    for name, parts in (("before", before), ("after", [temporary, *(lines for lines, _ in after)])):
        text += ["@T.prim_func(s_tir=True)", f"def {name}({BOX}):", '    T.func_attr({"tirx.noalias": True})']
        text += [f"    {line}" for lines in parts for line in lines] + ["", ""]
    return "\n".join(text)


def _differs(old: PrimFunc, new: PrimFunc, rng: np.random.Generator) -> bool:
    """Whether some run tells the programs apart."""
    for _ in range(60):
        low, high = ((-2, TABLE + 3), (0, TABLE), (0, TABLE), (-1, TABLE + 1))[int(rng.integers(4))]
        arrays = {
            "A": rng.random(TABLE, dtype=np.float32),
            "B": rng.random(LENGTH, dtype=np.float32),
            **{name: rng.integers(low, high, LENGTH, dtype=np.int32) for name in "IJ"},
            "D": rng.integers(-1, 2, LENGTH, dtype=np.int32),
        }
        try:
            first = run(old, arrays)
        except Fault:
            continue
        try:
            second = run(new, arrays)
        except Fault:
            return True
        if not all(same_values(first[name], second[name]).all() for name in ("B", "I")):
            return True
    return False


def attack(seed: int, pairs: int) -> Tally:
    """So many pairs, checked and run."""
    tally = Tally()
    for number in range(pairs):
        rng = Random(f"{seed} {number}")
        text = pair(rng)
        rewrite = parse_rewrite(text)
        found = [v.status for v in prove_rewrite(rewrite).verdicts]
        proved = all(status is Status.PROVED for status in found)
        differs = _differs(rewrite.old, rewrite.new, np.random.default_rng([seed, number]))
        tally.counts[f"{'proved' if proved else 'open'}, {'runs differ' if differs else 'no run differs'}"] += 1
        if proved and differs:
            tally.wrong.append(text)
    return tally


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    tally = attack(options.seed, options.pairs)
    for name, count in sorted(tally.counts.items()):
        print(f"{count:6}  {name}")
    for text in tally.wrong[:5]:
        print(text)
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
