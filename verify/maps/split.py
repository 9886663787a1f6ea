"""The most common maps: each output is a digit of one input that is moved by a number, and all digits of the inputs are
there, in a mixed radix: `[(c + 1)//32, h, (c + 1)//4 % 8, (c + 1)%4]`, on a concrete shape.

Every integer is the sum of its digits times their weights. So the weighted sum of the cells, less the number, is the
inverse; and a cell, whose lower coordinates are digits, is reached exactly where that sum is a logical index. Nothing
is searched for or rewritten. Part of the trusted computing base.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import gcd, prod
from time import perf_counter

from layoutproof.ir.dtype import INT32, INT64
from layoutproof.ir.expr import FALSE, TRUE, Binary, Expr, IntImm, Var, logical_or
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.operators import BinaryOp
from layoutproof.verify.algebra.lift import NumberTooWide, number
from layoutproof.verify.maps.inverse import Term, bound_expr
from layoutproof.verify.maps.map_report import MapReport, Padding, bijective_claim, injective_claim
from layoutproof.verify.maps.problem import Reading, cell_variable
from layoutproof.verify.verdict.verdict import Status, Verdict

Digit = tuple[str, int, int, int]  # of `(name + offset) // weight % modulus`; a modulus of 0 for none
LONGEST = 3  # digits of an input with padding; of more digits a shorter condition may be found by looking at all cells


@dataclass(slots=True)
class _Split:
    """One input with its digits: the weight, the modulus and the axis of each."""

    extent: int
    offset: int = 0
    digits: list[tuple[int, int, int]] = field(default_factory=list)

    def is_whole(self) -> bool:
        """Whether these are all digits of one radix, each once."""
        expected = 1
        for weight, modulus, _ in sorted(self.digits):
            if weight != expected:
                return False
            expected = weight * modulus  # 0, which is no weight, after the highest
        return expected == 0

    def terms(self, sizes: Sequence[int]) -> list[Term]:
        """The digits that have more than one value, the highest first."""
        found = [
            Term(weight, cell_variable(axis, INT32), 0, sizes[axis] - 1)
            for weight, _, axis in self.digits
            if sizes[axis] > 1
        ]
        found.sort(key=_by_factor)
        return found


def _by_factor(term: Term) -> int:
    return -term.factor


def report_on_splits(reading: Reading, start: float) -> MapReport | None:
    """Everything about a map of splits in its box of digits; None for any other map."""
    if reading.symbols or reading.where is not TRUE:
        return None
    found = _read_splits(reading)
    if found is None:
        return None
    splits, sizes = found
    try:
        return _report(reading, splits, sizes, start)
    except NumberTooWide:
        return None


def _read_splits(reading: Reading) -> tuple[list[_Split], list[int]] | None:
    """The splits of the inputs, in their order, and the extents of the box."""
    splits: list[_Split] = []
    by_name: dict[str, _Split] = {}
    for v, extent in zip(reading.index_map.inputs, reading.extents, strict=True):
        if not isinstance(extent, int) or v.dtype != INT32:
            return None
        by_name[v.name] = _Split(extent)
        splits.append(by_name[v.name])
    sizes: list[int] = []
    for axis, output in enumerate(reading.index_map.outputs):
        digit = _read_digit(output)
        if digit is None or digit[1] < 0:
            return None
        name, offset, weight, modulus = digit
        split = by_name[name]
        if split.digits and split.offset != offset:
            return None
        split.offset = offset
        split.digits.append((weight, modulus, axis))
        sizes.append(modulus if modulus else (split.extent - 1 + offset) // weight + 1)
    if all(split.is_whole() if split.digits else split.extent == 1 for split in splits):
        return splits, sizes
    return None


def _read_digit(expr: Expr) -> Digit | None:
    """The digit that an expression is written as; None for other forms."""
    weight, modulus = 1, 0
    if isinstance(expr, Binary) and expr.op is BinaryOp.FLOORMOD:
        expr, modulus = _divided(expr)
        if modulus < 1:
            return None
    if isinstance(expr, Binary) and expr.op is BinaryOp.FLOORDIV:
        expr, weight = _divided(expr)
        if weight < 1:
            return None
    if isinstance(expr, Var):
        return expr.name, 0, weight, modulus
    if isinstance(expr, Binary) and expr.op is BinaryOp.ADD:
        if isinstance(expr.lhs, Var) and isinstance(expr.rhs, IntImm):
            return expr.lhs.name, expr.rhs.value, weight, modulus
    return None


def _divided(expr: Binary) -> tuple[Expr, int]:
    """The dividend, and the divisor if it is a number; else 0."""
    return expr.lhs, expr.rhs.value if isinstance(expr.rhs, IntImm) else 0


def _report(reading: Reading, splits: list[_Split], sizes: list[int], start: float) -> MapReport | None:
    inverses: list[Expr] = []
    outside: list[tuple[int, list[Expr], _Split, bool]] = []  # by first axis: when a cell is padding; is the last one?
    for split in splits:
        terms, offset = split.terms(sizes), split.offset
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


def _first_axis(outside: tuple[int, list[Expr], _Split, bool]) -> int:
    return outside[0]


def _outside(terms: list[Term], split: _Split, spare: int) -> list[Expr]:
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


def _hole(split: _Split, sizes: Sequence[int], is_last: bool) -> list[int]:
    """The first or the last cell of one input's digits, with 0 for the others."""
    hole = [0] * len(sizes)
    if is_last:
        for _, _, axis in split.digits:
            hole[axis] = sizes[axis] - 1
    return hole


def _flattened(given: IndexMap, sizes: list[int]) -> tuple[Expr, ...]:
    counts = [prod(sizes)] if not given.separators else [prod([sizes[axis] for axis in g]) for g in given.groups]
    return tuple([number(count, INT32 if count <= INT32.max_int else INT64) for count in counts])
