"""Ranges of index expressions over many boxes of loop values at once, to find the iterations that access given cells.

A box holds an interval for every loop variable. `None` stands for an unknown range: the caller keeps the box.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutproof.ir.evaluate import Overflow, evaluate
from layoutproof.ir.expr import Binary, Cast, Compare, Expr, IntImm, Logical, Not, Var
from layoutproof.ir.interp.analysis import reads_memory
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.semantics import Trap
from layoutproof.ir.visit import free_variables

Ints = npt.NDArray[np.int64]
Range = tuple[Ints, Ints]


@dataclass(frozen=True, slots=True)
class Boxes:
    """`count` boxes: by variable, the least and the largest value in each. A variable that is not there is unknown."""

    count: int
    ranges: Mapping[str, Range]

    def take(self, keep: npt.NDArray[Any]) -> Boxes:
        """Some of the boxes: by a mask, or by numbers (repeated ones too)."""
        ranges = {name: (low[keep], high[keep]) for name, (low, high) in self.ranges.items()}
        count = int(np.count_nonzero(keep)) if keep.dtype == np.bool_ else len(keep)
        return Boxes(count, ranges)

    def with_range(self, name: str, values: Range) -> Boxes:
        """The boxes with a variable's interval set."""
        return Boxes(self.count, {**self.ranges, name: values})

    def is_point(self, name: str) -> bool:
        """Whether a variable has one value in each box."""
        found = self.ranges.get(name)
        return found is not None and (found[0] is found[1] or bool(np.array_equal(found[0], found[1])))


def constant(boxes: Boxes, value: int) -> Range:
    """One value in every box."""
    values = np.full(boxes.count, value, dtype=np.int64)
    return values, values


def range_of(expr: Expr, boxes: Boxes) -> Range | None:
    """The least and the largest value (or bounds on them) of an integer or truth expression in each box, None if
    unknown.

    Exact where every variable of the expression has one value in each box.
    """
    if isinstance(expr, IntImm):
        return constant(boxes, expr.value)
    if isinstance(expr, Var):
        return boxes.ranges.get(expr.name)
    if reads_memory(expr):
        return None
    names = [v.name for v in free_variables(expr)]
    if all(boxes.is_point(name) for name in names):
        return _exact(expr, boxes, names)
    rule = _RULES.get(type(expr))
    return rule(expr, boxes) if rule is not None else None


def _exact(expr: Expr, boxes: Boxes, names: list[str]) -> Range | None:
    try:
        values = evaluate(expr, {name: boxes.ranges[name][0] for name in names})
    except (
        Trap,
        Overflow,
        TypeError,
    ):  # a trap in one lane, numbers of more than 64 bits, or floats: not index arithmetic that tells anything here
        return None
    points = np.broadcast_to(np.asarray(values, dtype=np.int64), (boxes.count,))
    return points, points


def _binary(expr: Binary, boxes: Boxes) -> Range | None:
    a, b = range_of(expr.lhs, boxes), range_of(expr.rhs, boxes)
    if a is None or b is None:
        return None
    rule = _ARITHMETIC.get(expr.op)
    return rule(a, b) if rule is not None else None


def _times(a: Range, b: Range) -> Range:
    corners = np.stack([x * y for x in a for y in b])
    return corners.min(axis=0), corners.max(axis=0)


def _quotient(a: Range, b: Range) -> Range | None:
    if (b[0] < 1).any():
        return None
    corners = np.stack([x // y for x in a for y in b])
    return corners.min(axis=0), corners.max(axis=0)


def _remainder(a: Range, b: Range) -> Range | None:
    if (b[0] < 1).any():
        return None
    # Within one period of one divisor the remainder runs along with the dividend.
    same = (b[0] == b[1]) & (a[0] // b[0] == a[1] // b[0])
    return np.where(same, a[0] % b[0], 0), np.where(same, a[1] % b[0], b[1] - 1)


_ARITHMETIC: Mapping[BinaryOp, Callable[[Range, Range], Range | None]] = {
    BinaryOp.ADD: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    BinaryOp.SUB: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    BinaryOp.MUL: _times,
    BinaryOp.FLOORDIV: _quotient,
    BinaryOp.FLOORMOD: _remainder,
    BinaryOp.MIN: lambda a, b: (np.minimum(a[0], b[0]), np.minimum(a[1], b[1])),
    BinaryOp.MAX: lambda a, b: (np.maximum(a[0], b[0]), np.maximum(a[1], b[1])),
}


def _compare(expr: Compare, boxes: Boxes) -> Range | None:
    a, b = range_of(expr.lhs, boxes), range_of(expr.rhs, boxes)
    if a is None or b is None:
        return None
    match expr.op:
        case CompareOp.LT:
            return _truth(a[1] < b[0], a[0] < b[1])
        case CompareOp.LE:
            return _truth(a[1] <= b[0], a[0] <= b[1])
        case CompareOp.GT:
            return _truth(a[0] > b[1], a[1] > b[0])
        case CompareOp.GE:
            return _truth(a[0] >= b[1], a[1] >= b[0])
        case CompareOp.EQ:
            return _truth((a[0] == a[1]) & (b[0] == b[1]) & (a[0] == b[0]), (a[0] <= b[1]) & (b[0] <= a[1]))
        case CompareOp.NE:
            return _truth((a[1] < b[0]) | (b[1] < a[0]), ~((a[0] == a[1]) & (b[0] == b[1]) & (a[0] == b[0])))


def _truth(surely: npt.NDArray[np.bool_], perhaps: npt.NDArray[np.bool_]) -> Range:
    return surely.astype(np.int64), perhaps.astype(np.int64)


def _logical(expr: Logical, boxes: Boxes) -> Range | None:
    """A side that is unknown leaves what the other decides."""
    unknown = np.zeros(boxes.count, dtype=np.int64), np.ones(boxes.count, dtype=np.int64)
    a, b = range_of(expr.lhs, boxes), range_of(expr.rhs, boxes)
    x, y = a if a is not None else unknown, b if b is not None else unknown
    if expr.op is LogicalOp.AND:
        return np.minimum(x[0], y[0]), np.minimum(x[1], y[1])
    return np.maximum(x[0], y[0]), np.maximum(x[1], y[1])


def _not(expr: Not, boxes: Boxes) -> Range | None:
    a = range_of(expr.operand, boxes)
    return None if a is None else (1 - a[1], 1 - a[0])


def _cast(expr: Cast, boxes: Boxes) -> Range | None:
    return range_of(expr.value, boxes) if expr.dtype.is_integer and expr.value.dtype.is_integer else None


_RULES: Mapping[type, Callable[..., Range | None]] = {
    Binary: _binary,
    Compare: _compare,
    Logical: _logical,
    Not: _not,
    Cast: _cast,
}
