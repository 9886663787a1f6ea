"""Whether a map report says the truth: each claim of its JSON form compared with brute force, and every text in it
run.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.oracle import maps as oracle
from tests.oracle.maps import Truth

Symbols = Mapping[str, int]


@dataclass(frozen=True)
class Complaint:
    """One thing that is wrong with a report. `kind` is what is counted."""

    kind: str
    expected: str
    got: str

    def __str__(self) -> str:
        return f"{self.kind}: expected {self.expected}, got {self.got}"


def judge(report: Mapping[str, Any], true: Truth, symbols: Symbols | None = None) -> list[Complaint]:
    """What the report says wrongly of a map on a concrete box (the extents put in for a symbolic one); empty when all
    is right.

    `report` is the JSON form. The map must not go below zero: that is an error, not a report. With symbols, null is an
    honest answer.
    """
    known = dict(symbols or {})
    assert true.shape is not None
    complaints = _verdict("injective", report["injective"], true.injective, known)
    complaints += _verdict("bijective", report["bijective"], true.bijective, known)
    shape = tuple(_integer(extent, known) for extent in report["physical_shape"])
    if shape != true.shape:
        return [*complaints, Complaint("shape", str(true.shape), f"{shape} ({report['physical_shape']})")]
    flattened = tuple(_integer(extent, known) for extent in report["flattened_shape"])
    if flattened != true.flattened or tuple(report["axis_separators"]) != true.separators:
        complaints.append(
            Complaint("flattening", f"{true.flattened} {true.separators}", f"{flattened} {report['axis_separators']}")
        )
    complaints += _padding(report["padding"], true, known)
    if true.injective and report["inverse"] is None and not known:
        complaints.append(Complaint("no inverse", "an inverse, since the map is injective", "null"))
    if report["inverse"] is not None:
        complaints += _inverse(report["inverse"], true, known)
    complaints += _same_map(report["index_map"], true, known)
    if not known:
        complaints += _counterexamples(report, true)
    return complaints


def _integer(value: Any, symbols: Symbols) -> int:
    if isinstance(value, int):
        return value
    return int(eval(value, {"__builtins__": {}, **symbols}))


def _verdict(name: str, verdict: Mapping[str, Any], true: bool, symbols: Symbols) -> list[Complaint]:
    """A concrete claim is decided rightly; a symbolic one is not proved where it is false (one refutation is enough
    elsewhere).
    """
    status = verdict["status"]
    if status == "unknown":
        return [Complaint(f"unknown {name}", "proved or refuted", str(verdict["reason"]))]
    if status == "proved" and not true:
        return [Complaint(f"FALSE PROOF {name}", f"refuted {dict(symbols)}", f"proved by {verdict['engine']}")]
    if status == "refuted" and true and not symbols:
        return [Complaint(f"false refutation {name}", "proved", f"{verdict['counterexample']} by {verdict['engine']}")]
    if status == "vacuous":
        return [Complaint(f"vacuous {name}", "proved or refuted", str(verdict["reason"]))]
    return []


def _padding(padding: Mapping[str, Any], true: Truth, symbols: Symbols) -> list[Complaint]:
    complaints = []
    cells, fraction = padding["cells"], padding["fraction"]
    if (cells is None and not symbols) or (cells is not None and _integer(cells, symbols) != true.cells):
        complaints.append(Complaint("cells", str(true.cells), f"{cells} {dict(symbols)}"))
    if fraction is not None and not math.isclose(fraction, true.cells / true.box_cells, rel_tol=1e-9, abs_tol=1e-12):
        complaints.append(Complaint("fraction", str(true.cells / true.box_cells), str(fraction)))
    text = padding["predicate"]
    if text is None:
        return complaints if symbols else [*complaints, Complaint("no predicate", "a predicate", "null")]
    assert true.shape is not None
    foreign = oracle.foreign(text, [*oracle.physical_names(len(true.shape)), *symbols])
    if foreign:
        return [
            *complaints,
            Complaint("grammar", "operators and names that anyone can evaluate", f"{foreign} in {text}"),
        ]
    try:
        said = oracle.cells_where(text, true.shape, symbols)
    except (ArithmeticError, ValueError) as trap:
        return [*complaints, Complaint("predicate traps", "a value at every cell", f"{trap} in {text}")]
    wrong = np.flatnonzero(said != true.padding)
    if len(wrong):
        cell = tuple(int(x) for x in np.unravel_index(wrong[0], true.shape))
        expected = f"{bool(true.padding[wrong[0]])} at {cell} {dict(symbols)}"
        complaints.append(Complaint("predicate", expected, f"{text} ({len(wrong)} cells)"))
    return complaints


def _inverse(text: str, true: Truth, symbols: Symbols) -> list[Complaint]:
    assert true.shape is not None
    if not true.injective and not symbols:
        return [Complaint("inverse", "none, since the map is not injective", text)]
    if not true.injective:
        return []
    parts = oracle.read_map(text)
    names = [*oracle.physical_names(len(true.shape)), *symbols]
    foreign = [f for entry in parts.outputs for f in oracle.foreign(ast.unparse(entry), names)]
    if foreign:
        return [Complaint("grammar", "operators and names that anyone can evaluate", f"{foreign} in {text}")]
    try:
        back = oracle.unmapped(text, true.shape, symbols)
    except (ArithmeticError, ValueError) as trap:
        return [Complaint("inverse traps", "a value at every cell", f"{trap} in {text}")]
    points = np.stack(true.points, axis=1) if true.points else np.zeros((1, 0), dtype=np.int64)
    got = back[true.flat]
    if got.shape != points.shape:
        return [Complaint("inverse", f"{points.shape[1]} outputs", text)]
    wrong = np.flatnonzero((got != points).any(axis=1))
    if len(wrong):
        at = wrong[0]
        expected = f"{points[at].tolist()} at {true.image[at].tolist()} {dict(symbols)}"
        return [Complaint("inverse", expected, f"{got[at].tolist()} from {text}")]
    return []


def _same_map(text: str, true: Truth, symbols: Symbols) -> list[Complaint]:
    """The canonical text in the report means the map that was asked about."""
    if not np.array_equal(oracle.images(text, true.points, symbols), true.image):
        return [Complaint("text", true.text, text)]
    return []


def _counterexamples(report: Mapping[str, Any], true: Truth) -> list[Complaint]:
    complaints = []
    for name in ("injective", "bijective"):
        example = report[name]["counterexample"]
        if report[name]["status"] == "refuted" and not is_counterexample(
            example, true, allow_unreached=name == "bijective"
        ):
            complaints.append(Complaint(f"counterexample {name}", "one that can be replayed", str(example)))
    return complaints


def is_counterexample(example: Mapping[str, Any] | None, true: Truth, allow_unreached: bool) -> bool:
    """Whether it shows two logical indices with one image, or (for `onto`) a cell of the box without a logical
    index.
    """
    assert true.shape is not None
    if example is None:
        return False
    if "unreached" in example:
        cell = example["unreached"]
        inside = len(cell) == len(true.shape) and all(0 <= c < n for c, n in zip(cell, true.shape, strict=True))
        return allow_unreached and inside and bool(true.padding[_offset(cell, true.shape)])
    first, second = example["first"], example["second"]
    if first == second or not all(_inside(index, true.logical) for index in (first, second)):
        return False
    rows = [true.image[_offset(index, true.logical)].tolist() for index in (first, second)]
    return bool(rows[0] == rows[1] == list(example["image"]))


def _inside(index: Sequence[int], shape: Sequence[int]) -> bool:
    return len(index) == len(shape) and all(0 <= i < n for i, n in zip(index, shape, strict=True))


def _offset(index: Sequence[int], shape: Sequence[int]) -> int:
    offset = 0
    for i, n in zip(index, shape, strict=True):
        offset = offset * n + i
    return offset


def judge_refusal(message: str, true: Truth) -> list[Complaint]:
    """Whether an error about an image below zero is deserved and names a logical index that goes there."""
    if true.negative is None:
        return [Complaint("refused", "a report", message)]
    named = [
        tuple(int(n) for n in re.findall(r"-?\d+", group)) for group in re.findall(r"[\[(]([^\[\]()]*)[\])]", message)
    ]
    goes_below = [
        index
        for index in named
        if _inside(index, true.logical) and (true.image[_offset(index, true.logical)] < 0).any()
    ]
    return [] if goes_below else [Complaint("refusal", f"a logical index such as {true.negative}", message)]
