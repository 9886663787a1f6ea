"""The report on a map that only splits its inputs into digits, read from how it is written.

The weighted sum of the cells, less the offset, is the inverse; and a cell, whose lower coordinates are digits, is
reached exactly where that sum is a logical index.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from time import perf_counter

from layoutproof.ir.dtype import INT32, INT64
from layoutproof.ir.expr import FALSE, Binary, Expr, IntImm, logical_or
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.operators import BinaryOp
from layoutproof.verify.algebra.lift import NumberTooWide, number
from layoutproof.verify.maps.conditions import Term, bound_expr
from layoutproof.verify.maps.injective import Split, injective_claim, read_splits
from layoutproof.verify.maps.map_report import MapReport, Padding, bijective_claim
from layoutproof.verify.maps.problem import Reading, cell_variable
from layoutproof.verify.verdict.verdict import Status, Verdict

LONGEST = 3  # digits of an input with padding; of more digits a shorter condition may be found by looking at all cells


def report_on_splits(reading: Reading, start: float) -> MapReport | None:
    """Everything about a map of splits in its box of digits; None for any other map."""
    found = read_splits(reading)
    if found is None:
        return None
    splits, sizes = found
    try:
        return _report(reading, splits, sizes, start)
    except NumberTooWide:
        return None


def _terms(split: Split, sizes: Sequence[int]) -> list[Term]:
    """The digits that have more than one value, the highest first."""
    found = [
        Term(weight, cell_variable(axis, INT32), 0, sizes[axis] - 1)
        for weight, _, axis in split.digits
        if sizes[axis] > 1
    ]
    found.sort(key=_by_factor)
    return found


def _by_factor(term: Term) -> int:
    return -term.factor


def _report(reading: Reading, splits: list[Split], sizes: list[int], start: float) -> MapReport | None:
    inverses: list[Expr] = []
    outside: list[tuple[int, list[Expr], Split, bool]] = []  # by first axis: when a cell is padding; is the last one?
    for split in splits:
        terms, offset = _terms(split, sizes), split.offset
        inverses.append(_sum(terms, offset) if split.extent > 1 else number(0))
        spare = sum([weight * (sizes[axis] - 1) for weight, _, axis in split.digits]) - offset - split.extent
        if offset or spare >= 0:
            if len(split.digits) > LONGEST:
                return None
            outside.append((split.digits[0][2], _outside(terms, split, spare), split, spare >= 0))
    rank, engine = len(sizes), "symbolic"
    inverse = IndexMap(tuple([cell_variable(axis, INT32) for axis in range(rank)]), tuple(inverses))
    physical = tuple([number(size) for size in sizes])
    domain = reading.domain_text()
    injective = Verdict(Status.PROVED, injective_claim(domain), engine, seconds=perf_counter() - start)
    claim = bijective_claim(physical, domain)
    if not outside:
        bijective = Verdict(Status.PROVED, claim, engine, seconds=perf_counter() - start)
        padding = Padding(FALSE, 0, 0.0)
    else:
        outside.sort(key=_first_axis)
        hole = _hole(outside[0][2], sizes, outside[0][3])
        if not _is_unreached(reading, inverse, hole):
            return None
        example = {"unreached": hole}
        bijective = Verdict(Status.REFUTED, claim, engine, counterexample=example, seconds=perf_counter() - start)
        cells = prod(sizes)
        count = cells - prod([split.extent for split in splits])
        predicate = logical_or(*[condition for _, conditions, _, _ in outside for condition in conditions])
        padding = Padding(predicate, count, count / cells)
    given = reading.given
    return MapReport(
        given, reading.shape, injective, bijective, physical,
        given.separators, _flattened(given, sizes), inverse, padding,
    )  # fmt: skip


def _sum(terms: list[Term], offset: int) -> Expr:
    """The sum of the terms, of which there is one, less the offset."""
    result: Expr | None = None
    for term in terms:
        part = term.expr if term.factor == 1 else Binary(BinaryOp.MUL, number(term.factor), term.expr)
        result = part if result is None else Binary(BinaryOp.ADD, result, part)
    assert result is not None
    return Binary(BinaryOp.SUB, result, number(offset)) if offset else result


def _is_unreached(reading: Reading, inverse: IndexMap, hole: list[int]) -> bool:
    """Whether the reference evaluator agrees: the inverse gives no logical index, or one with another image."""
    index = inverse.evaluate(hole)
    for i, extent in zip(index, reading.shape, strict=True):
        if not (isinstance(extent, IntImm) and 0 <= i < extent.value):
            return True
    return list(reading.index_map.evaluate(index)) != hole


def _first_axis(outside: tuple[int, list[Expr], Split, bool]) -> int:
    return outside[0]


def _outside(terms: list[Term], split: Split, spare: int) -> list[Expr]:
    """When the sum of the terms, less the offset, is no logical index: it is below 0, or at least the extent."""
    common = gcd(*[term.factor for term in terms])
    if common > 1:
        terms = [Term(term.factor // common, term.expr, term.low, term.high) for term in terms]
    found: list[Expr] = []
    if split.offset:
        found.append(bound_expr(terms, -(-split.offset // common), False))
    if spare >= 0:
        found.append(bound_expr(terms, -(-(split.offset + split.extent) // common), True))
    return found


def _hole(split: Split, sizes: Sequence[int], is_last: bool) -> list[int]:
    """The first or the last cell of one input's digits, with 0 for the others."""
    hole = [0] * len(sizes)
    if is_last:
        for _, _, axis in split.digits:
            hole[axis] = sizes[axis] - 1
    return hole


def _flattened(given: IndexMap, sizes: list[int]) -> tuple[Expr, ...]:
    counts = [prod(sizes)] if not given.separators else [prod([sizes[axis] for axis in g]) for g in given.groups]
    return tuple([number(count, INT32 if count <= INT32.max_int else INT64) for count in counts])
