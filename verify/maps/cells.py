"""Cells of a box that have something in common: those between straight lines, as a condition, and one that a map does
not reach, by search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, Var, compare, logical_and, logical_or
from layoutproof.ir.operators import CompareOp
from layoutproof.ir.visit import substitute
from layoutproof.verify.algebra.enumeration import MAX_CELLS, Table, TooLarge, fits_arrays, over_box
from layoutproof.verify.algebra.rendering import join
from layoutproof.verify.maps.map_report import Answer
from layoutproof.verify.maps.problem import Part

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from layoutproof.ir.late import np


Mask: TypeAlias = "NDArray[np.bool_]"
Ints: TypeAlias = "NDArray[np.int64]"
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
    """A condition that is true exactly on the mask, if it or its complement lies between two lines."""
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
    """Lines such that the rows' true cells are those from the first to before the second, if they are found."""
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
    """Lines that these points may lie on: through all of them, or through the first and through the last two."""
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


_WINDOW = 1 << 16


def find_hole(parts: Sequence[Part], answers: Sequence[Answer]) -> list[int] | None:
    """A concrete cell of the whole box for which some component's padding condition holds, if the search meets one."""
    rank = len(parts[0].problem.index_map.outputs) if parts else 0
    for part, answer in zip(parts, answers, strict=True):
        found = dict(answer.hole) if answer.hole is not None else None
        if found is None and answer.padding:
            found = _search(part, answer.padding)
        if found is not None:
            return [found.get(axis, 0) for axis in range(rank)]
    return None


def _search(part: Part, padding: Sequence[Expr]) -> dict[int, int] | None:
    condition = logical_or(*padding)
    last = {f"p{axis}": size - 1 for axis, size in zip(part.axes, part.box, strict=True)}
    for corner in (last, dict.fromkeys(last, 0)):
        if evaluate(condition, corner):
            return {axis: corner[f"p{axis}"] for axis in part.axes}
    for backwards in (False, True):
        found = _window(part, condition, backwards)
        if found is not None:
            return found
    return _spread(part, condition)


def _spread(part: Part, condition: Expr) -> dict[int, int] | None:
    """A padding cell among many spread over a large box, always the same ones."""
    steps = np.arange(_WINDOW, dtype=np.int64)
    env: dict[str, Any] = {}
    for position, (axis, size) in enumerate(zip(part.axes, part.box, strict=True)):
        # Multiples of odd numbers near the golden section of 2**31 are spread evenly.
        env[f"p{axis}"] = (steps * (1_327_217_885 + 2_654_435 * position) % (1 << 31)) * size >> 31
    bounds = {f"p{axis}": size for axis, size in zip(part.axes, part.box, strict=True)}
    if max(part.box) >= 1 << 31 or not fits_arrays(condition, bounds):
        return None
    hits = np.flatnonzero(np.broadcast_to(evaluate(condition, env), steps.shape))
    return None if not len(hits) else {axis: int(env[f"p{axis}"][hits[0]]) for axis in part.axes}


def _window(part: Part, condition: Expr, backwards: bool) -> dict[int, int] | None:
    """The first padding cell of the box, or of a window at its start or end where the box is large."""
    box = list(part.box)
    limit = _WINDOW if prod(box) > MAX_CELLS else MAX_CELLS
    while prod(box) > limit:
        longest = box.index(max(box))
        box[longest] = (box[longest] + 1) // 2
    offsets = [whole - seen if backwards else 0 for whole, seen in zip(part.box, box, strict=True)]
    if backwards and not any(offsets):
        return None
    names = [f"p{axis}" for axis in part.axes]
    try:
        if any(offsets):
            condition = _shifted(part, condition, offsets)
        hits = np.flatnonzero(over_box(condition, names, box))
    except TooLarge:
        return None
    if not len(hits):
        return None
    point = Table(tuple(box), []).point(int(hits[0]))
    return {axis: p + offset for axis, p, offset in zip(part.axes, point, offsets, strict=True)}


def _shifted(part: Part, condition: Expr, offsets: Sequence[int]) -> Expr:
    cells = [Var(f"p{axis}", part.cell_type) for axis in part.axes]
    return substitute(condition, {cell: cell + offset for cell, offset in zip(cells, offsets, strict=True)})
