"""Sets of cells of two axes that lie between straight lines: `p0 < p1 or p0 >= p1 + 4` instead of one condition for each row.

A proposal only: it is compared with the set, cell by cell, before it is used. `predicates` chooses between it and other texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from layoutproof.ir.expr import CompareOp, Expr, compare, logical_and, logical_or
from layoutproof.verify.lift import join

Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]
_SLOPES = (1, -1, 2, -2, 3, -3, 0)


@dataclass(frozen=True, slots=True)
class _Line:
    """`slope * x + offset`."""

    slope: int
    offset: int

    def at(self, x: Ints) -> Ints:
        """The line's height in each row."""
        return self.slope * x + self.offset

    def compared(self, op: CompareOp, x: Expr, y: Expr) -> Expr:
        """How `y` compares with the line."""
        return compare(op, *self._sides(x, y))

    def _sides(self, x: Expr, y: Expr) -> tuple[Expr, Expr]:
        left: list[tuple[int, Expr | None]] = [(1, y)]
        right: list[tuple[int, Expr | None]] = []
        if self.slope:
            (right if self.slope > 0 else left).append((abs(self.slope), x))
        if self.offset > 0 or not right:
            right.append((self.offset, None))
        elif self.offset:
            left.append((-self.offset, None))
        return join(left), join(right)


def band(mask: Mask, cells: Sequence[Expr]) -> Expr | None:
    """A condition that is true exactly on the mask of two axes, where the mask or its complement lies between lines; else None."""
    for axis, rows in enumerate((mask, mask.T)):
        x, y = cells[axis], cells[1 - axis]
        inside = _between(rows)
        if inside is not None:
            lower, upper = inside
            if _is_single(lower, upper):
                return lower[0].compared(CompareOp.EQ, x, y)
            facts = [line.compared(CompareOp.GE, x, y) for line in lower]
            return logical_and(*facts, *(line.compared(CompareOp.LT, x, y) for line in upper))
        outside = _between(~rows)
        if outside is not None:
            lower, upper = outside
            if _is_single(lower, upper):
                return lower[0].compared(CompareOp.NE, x, y)
            facts = [line.compared(CompareOp.LT, x, y) for line in lower]
            return logical_or(*facts, *(line.compared(CompareOp.GE, x, y) for line in upper))
    return None


def _is_single(lower: Sequence[_Line], upper: Sequence[_Line]) -> bool:
    """Whether one cell of each row lies between the lines."""
    return len(lower) == len(upper) == 1 and upper[0] == _Line(lower[0].slope, lower[0].offset + 1)


def _between(rows: Mask) -> tuple[list[_Line], list[_Line]] | None:
    """Lines with the rows' true cells exactly at or above the first ones and below the second ones; None where none are found."""
    edges = np.diff(rows.astype(np.int8), axis=1, prepend=0, append=0)
    if ((edges == 1).sum(axis=1) > 1).any():
        return None
    x = np.flatnonzero(rows.any(axis=1))
    starts, ends = (edges[x] == 1).argmax(axis=1), (edges[x] == -1).argmax(axis=1)
    width = rows.shape[1]
    lowers = _lines(x[starts > 0], starts[starts > 0])
    uppers = _lines(x[ends < width], ends[ends < width])
    tried = ((a, b) for a in lowers for b in uppers)
    fitting = [(a, b) for a, b in tried if (_filled(a, b, rows.shape) == rows).all()]
    return min(fitting, key=lambda found: len(found[0]) + len(found[1]), default=None)


def _lines(x: Ints, y: Ints) -> list[list[_Line]]:
    """Lines that these points may lie on: one through all of them, or one through the first and one through the last two."""
    if not len(x):
        return [[]]
    if len(x) == 1:
        return [[_Line(slope, int(y[0] - slope * x[0]))] for slope in _SLOPES]
    first, last = _line_through(x[:2], y[:2]), _line_through(x[-2:], y[-2:])
    if first is None or last is None:
        return []
    return [[first]] if first == last else [[first], [last], [first, last]]


def _line_through(x: Ints, y: Ints) -> _Line | None:
    slope, rest = divmod(int(y[1] - y[0]), int(x[1] - x[0]))
    return None if rest else _Line(slope, int(y[0]) - slope * int(x[0]))


def _filled(lower: Sequence[_Line], upper: Sequence[_Line], shape: tuple[int, ...]) -> Mask:
    x, y = np.arange(shape[0])[:, None], np.arange(shape[1])[None, :]
    result = np.ones(shape, dtype=np.bool_)
    for line in lower:
        result &= y >= line.at(x)
    for line in upper:
        result &= y < line.at(x)
    return result
