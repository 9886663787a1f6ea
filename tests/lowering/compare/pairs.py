"""Pairs of programs as text: those of tests/data/compare, a file with `before` and `after` each, and upstream's pairs
of files.

The header of a file says in words what the pair shows, then what is to be told of it:

    # expect: proved                       the verdict, where layouts and pad values are given as follows
    # layout: B=lambda i: [i//4, i%4]      a line for each parameter
    # pad: B=T.float32(0)
    # match: right=A                       the parameter `right` of `after` is A of `before`
    # strictness: nnan nsz                 the fast-math assumptions of the proof; none where it holds bit for bit
    # unaided: refuted                     the verdict without layouts and pad values, where it is another one
    # because: are added in another order  words that a verdict `unknown` says
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from tests.tree import ROOT

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import load, load_module
from layoutproof.ir.visit import free_variables
from layoutproof.lowering.compare.compare_programs import compare
from layoutproof.lowering.compare.comparison import Comparison
from layoutproof.lowering.passes.find import find_block
from layoutproof.verify.verdict.verdict import Status

DATA = ROOT / "tests" / "data"
COMPARE, UPSTREAM = DATA / "compare", DATA / "pairs"
_LINE = re.compile(r"# (expect|layout|pad|match|strictness|unaided|because): (.*)")
_MANY = ("layout", "pad", "match")


@dataclass(frozen=True, eq=False)
class Pair:
    """Two programs, what is known of them, and what is to be found."""

    name: str
    before: PrimFunc
    after: PrimFunc
    layouts: Mapping[str, str]
    pads: Mapping[str, str]
    match: Mapping[str, str]
    expect: str = "proved"
    unaided: str = "proved"
    strictness: tuple[str, ...] = ()
    because: str | None = None

    def with_after(self, after: PrimFunc) -> Pair:
        """The same question about another program after."""
        return replace(self, after=after)

    def compared(self, *, given: bool = True) -> Comparison:
        """The answer, with layouts and pad values given or not."""
        known: dict[str, Any] = {"layouts": self.layouts, "pads": self.pads} if given else {}
        return compare(self.before, self.after, match=self.match, **known)


@cache
def pairs(folder: str) -> tuple[Pair, ...]:
    """Those of a folder of tests/data/compare, by name."""
    return tuple(_read(path) for path in sorted((COMPARE / folder).glob("*.py")))


def named(pairs_: tuple[Pair, ...], name: str) -> Pair:
    """The pair with a name."""
    return next(pair for pair in pairs_ if pair.name == name)


def _read(path: Path) -> Pair:
    single: dict[str, str] = {}
    many: dict[str, dict[str, str]] = {key: {} for key in _MANY}
    for line in path.read_text(encoding="utf-8").splitlines():
        found = _LINE.fullmatch(line)
        if found is None:
            continue
        key, value = found.groups()
        if key in _MANY:
            name, _, text = value.partition("=")
            many[key][name] = text
        else:
            single[key] = value
    functions = {f.name: f for f in load_module(path).functions}
    expect = single["expect"]
    return Pair(
        path.stem,
        functions["before"],
        functions["after"],
        many["layout"],
        many["pad"],
        many["match"],
        expect,
        single.get("unaided", expect),
        tuple(single.get("strictness", "").split()),
        single.get("because"),
    )


@cache
def upstream() -> tuple[Pair, ...]:
    """The pairs that upstream's own layout transform made of real operators, at their real sizes."""
    entries: list[dict[str, Any]] = json.loads((UPSTREAM / "manifest.json").read_text())
    return tuple(_upstream(entry) for entry in entries if entry["peer"] == "accepted")


def _upstream(entry: dict[str, Any]) -> Pair:
    before, after = (load(UPSTREAM / f"{entry['id']}.{side}.py") for side in ("before", "after"))
    kind, position = entry["buffer"]
    block = find_block(before, entry["block"])
    regions = block.reads if kind == "read" else block.writes
    assert regions is not None
    buffer = regions[position].buffer
    pads = {} if entry["pad_value"] is None else {buffer.name: entry["pad_value"]}
    return Pair(entry["id"], before, after, {buffer.name: entry["index_map"]}, pads, {})


# ---- folders of pairs elsewhere


def names_in(folder: Path) -> list[str]:
    """The names of the pairs that a folder's manifest wants proved, without hardware threads."""
    entries: list[dict[str, Any]] = json.loads((folder / "manifest.json").read_text())
    return [entry["id"] for entry in entries if entry["wanted"] == "proved" and not entry.get("threads")]


def proved_in(folder: Path, name: str) -> Pair | None:
    """A pair of such a folder, with the layouts and pad values that its proof found; None if it is not proved."""
    before, after = (load(folder / f"{name}.{side}.py") for side in ("before", "after"))
    found = compare(before, after)
    if found.status is not Status.PROVED:
        return None
    layouts = {each.buffer: each.index_map for each in found.layouts}
    pads = {each.buffer: each.pad_value for each in found.layouts if each.pad_value is not None}
    return Pair(name, before, after, layouts, pads, {}, strictness=found.strictness)


# ---- what is to be found


def cases(*folders: str) -> list[tuple[Pair, bool]]:
    """The pairs of some folders, with what is known given, and without where anything is."""
    every = [pair for folder in folders for pair in pairs(folder)]
    return [(pair, given) for pair in every for given in (True, False) if given or pair.layouts or pair.pads]


def case_name(value: object) -> str | None:
    """The words of a case in the list of tests."""
    if isinstance(value, Pair):
        return value.name
    return ("given" if value else "found") if isinstance(value, bool) else None


def told(found: Comparison) -> str:
    """An answer in a few lines, for a test that fails."""
    lines = [f"{found.status.value} {' '.join(found.strictness)}"]
    lines += [f"  {layout.buffer}: {layout.index_map} padded with {layout.pad_value}" for layout in found.layouts]
    lines += [
        f"  {v.status.value}: {v.claim.text}: {v.reason}"
        for v in found.verdicts
        if v.status not in (Status.PROVED, Status.VACUOUS)
    ]
    return "\n".join([*lines, *([f"  furthest: {found.furthest.text()}"] if found.furthest is not None else [])])


def check(pair: Pair, given: bool) -> Comparison:
    """The answer about a pair, which must be the one that its header announces, as strict, for its reason, with the
    layouts it means.
    """
    found = pair.compared(given=given)
    wanted = pair.expect if given else pair.unaided
    assert found.status.value == wanted, told(found)
    match found.status:
        case Status.PROVED:
            assert found.strictness == pair.strictness, told(found)
            assert found.rewrite is not None and found.furthest is None
            assert _same_places(pair, found), told(found)
        case Status.REFUTED:
            assert any(v.counterexample is not None for v in found.verdicts), told(found)
        case _:
            assert pair.because is not None and pair.because in told(found), told(found)
    return found


def _same_places(pair: Pair, found: Comparison) -> bool:
    """Whether the layouts that an answer holds with put every element where the pair's own do, at a few sizes where it
    has any.
    """
    if {layout.buffer for layout in found.layouts} != set(pair.layouts):
        return False
    afters = {b.name: b for b in pair.after.buffers}
    befores = {b.name: b for b in pair.before.buffers}
    for layout in found.layouts:
        before, after = befores[layout.buffer], afters[layout.stored_as]
        symbols = {v.name for b in (before, after) for e in b.shape for v in free_variables(e)}
        for size in (7, 8) if symbols else (0,):
            sizes = dict.fromkeys(symbols, size)
            shape, box = (tuple(int(evaluate(e, sizes)) for e in b.shape) for b in (before, after))
            maps = (
                parse_index_map(text, symbols=tuple(symbols))
                for text in (layout.index_map, pair.layouts[layout.buffer])
            )
            places = [m.flat_positions(shape, box, sizes).reshape(-1).tolist() for m in maps]
            if places[0] != places[1]:
                return False
    return True
