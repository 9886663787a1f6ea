"""Predicates over cells from tables: a condition that is true exactly on given cells; and expressions from tables of
values, by linear pieces, for inverses. The last resort, for maps that no engine describes in closed form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from layoutproof.ir.expr import FALSE, TRUE, Compare, Expr, Logical, compare, const, logical_and, logical_or
from layoutproof.ir.operators import CompareOp, LogicalOp
from layoutproof.ir.visit import walk
from layoutproof.verify.algebra.rendering import join
from layoutproof.verify.maps.cells import band

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from layoutproof.ir.late import np


Mask: TypeAlias = "NDArray[np.bool_]"
Ints: TypeAlias = "NDArray[np.int64]"
Run = tuple[int, int]
MAX_PIECES = 2048
PERIODS = 64
_LARGE = 1 << 16
_CHAIN = 24
_SERIES = 4


class TooManyPieces(Exception):
    """The table has no short description."""


def balanced(op: LogicalOp, terms: Sequence[Expr]) -> Expr:
    """The terms joined in a tree of small depth; from left to right, without parentheses, where they are few."""
    if len(terms) == 1:
        return terms[0]
    # A term that is a chain of its own is continued: `a or (b or c)` means the same, but reads worse.
    parts = [part for term in terms for part in _chain(op, term)] if len(terms) <= _CHAIN else []
    if parts and len(parts) <= _CHAIN:
        result = parts[0]
        for part in parts[1:]:
            result = Logical(op, result, part)
        return result
    middle = len(terms) // 2
    return Logical(op, balanced(op, terms[:middle]), balanced(op, terms[middle:]))


def _chain(op: LogicalOp, term: Expr) -> list[Expr]:
    if isinstance(term, Logical) and term.op is op:
        return [*_chain(op, term.lhs), *_chain(op, term.rhs)]
    return [term]


def predicate_of(mask: Mask, cells: Sequence[Expr], pieces: int = MAX_PIECES) -> Expr:
    """The condition on the cells that holds exactly where `mask` (one axis per cell variable) is true.

    Raises TooManyPieces where it would take more than `pieces` comparisons or groups of them.
    """
    return _describe(mask, list(cells), [pieces])


def _describe(mask: Mask, cells: list[Expr], budget: list[int]) -> Expr:
    if not mask.any():
        return FALSE
    if mask.all():
        return TRUE
    for axis in reversed(range(mask.ndim)):
        if (mask == mask.take([0], axis)).all():
            mask = _slice(mask, 0, axis)
            cells = cells[:axis] + cells[axis + 1 :]
    if mask.ndim == 1:
        return _one_axis(mask, cells[0], budget)
    ordered = _row_major(mask, cells)
    if ordered is not None:
        return ordered
    if mask.ndim > 2:
        return _by_slices(mask, cells, budget)
    between = band(mask, cells) if mask.size <= _LARGE else None
    if between is None:
        return _by_slices(mask, cells, budget)
    try:
        sliced = _by_slices(mask, cells, [min(budget[0], _comparisons(between))])
    except TooManyPieces:
        sliced = between
    chosen = min(sliced, between, key=_comparisons)
    _spend(budget, _comparisons(chosen))
    return chosen


def _comparisons(expr: Expr) -> int:
    return sum(isinstance(node, Compare) for node in walk(expr))


def _slice(mask: Mask, position: int, axis: int) -> Mask:
    return np.asarray(mask.take(position, axis))


def _spend(budget: list[int], pieces: int = 1) -> None:
    budget[0] -= pieces
    if budget[0] < 0:
        raise TooManyPieces("too many comparisons")


def _runs(mask: Mask) -> list[tuple[int, int]]:
    """The maximal stretches `[start, end)` on which a one-dimensional mask is true."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8)))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _one_axis(mask: Mask, cell: Expr, budget: list[int]) -> Expr:
    runs = _runs(mask)
    if len(runs) > 1:
        flags = mask.tobytes()
        for period in range(2, min(PERIODS, len(mask) // 2) + 1):
            if flags[period:] == flags[:-period] and len(_runs(mask[:period])) < len(runs):
                return _one_axis(mask[:period], cell % period, budget)
        return _some_runs(runs, _runs(~mask), cell, len(mask), budget)
    return _some_runs(runs, [], cell, len(mask), budget)


def _some_runs(runs: Sequence[Run], holes: Sequence[Run], cell: Expr, size: int, budget: list[int]) -> Expr:
    """That a cell lies in one of the runs, or, where that is shorter, outside of all holes around them."""
    series = _series(runs)
    if holes and _outside_length(holes, size) < sum(_series_length(each, size) for each in series):
        _spend(budget, len(holes))
        return balanced(LogicalOp.AND, [_outside(cell, start, end, size) for start, end in holes])
    _spend(budget, len(series))
    return balanced(LogicalOp.OR, [_in_series(cell, each, size) for each in series])


def _series(runs: Sequence[Run]) -> list[Sequence[Run]]:
    """The runs in groups, each of one run or of at least four of equal length at equal distances."""
    result: list[Sequence[Run]] = []
    k = 0
    while k < len(runs):
        last = k + 1
        if last < len(runs):
            step, length = runs[last][0] - runs[k][0], runs[k][1] - runs[k][0]
            while (
                last < len(runs)
                and runs[last][0] - runs[last - 1][0] == step
                and runs[last][1] - runs[last][0] == length
            ):
                last += 1
            residue = runs[k][0] % step
            if last - k < _SERIES or residue + length > step:
                last = k + 1
        result.append(runs[k:last])
        k = last
    return result


def _in_series(cell: Expr, series: Sequence[Run], size: int) -> Expr:
    """That a cell is between the first and the last run, and at the right place in its period."""
    (start, end), step = series[0], series[1][0] - series[0][0] if len(series) > 1 else 0
    if not step:
        return _within(cell, start, end, size)
    facts = []
    if start >= step:
        facts.append(cell >= start)
    if series[-1][0] + step < size:
        facts.append(cell < series[-1][1])
    return logical_and(*facts, _within(cell % step, start % step, start % step + end - start, step))


def _series_length(series: Sequence[Run], size: int) -> int:
    """How many comparisons `_in_series` takes."""
    if len(series) == 1:
        (start, end), ends = series[0], 0
    else:
        first, step = series[0], series[1][0] - series[0][0]
        ends = (first[0] >= step) + (series[-1][0] + step < size)
        start, end, size = first[0] % step, first[0] % step + first[1] - first[0], step
    return ends + (1 if end - start == 1 or start == 0 or end == size else 2)


def _outside_length(holes: Sequence[Run], size: int) -> int:
    """How many comparisons `_outside` takes for all holes; those joined by `or` count for more, with parentheses."""
    return sum(
        1 if end - start == 1 or start == 0 or end == size else 2 if len(holes) == 1 else 3 for start, end in holes
    )


def everything_but(taken: NDArray[Any], size: int, cell: Expr) -> Expr:
    """The condition that a cell of `[0, size)` is none of the `taken` ones, which ascend. Raises TooManyPieces."""
    last = np.flatnonzero(np.concatenate((taken[1:] != taken[:-1] + 1, [True])))
    starts = [int(taken[0]), *(int(taken[k + 1]) for k in last[:-1])]
    ends = [int(taken[k]) + 1 for k in last]
    edges = [0, *(edge for pair in zip(starts, ends, strict=True) for edge in pair), size]
    runs = [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]
    return _some_runs(runs, list(zip(starts, ends, strict=True)), cell, size, [MAX_PIECES]) if runs else FALSE


def _within(cell: Expr, start: int, end: int, size: int) -> Expr:
    if end - start == 1:
        return compare(CompareOp.EQ, cell, const(start))
    facts = []
    if start > 0:
        facts.append(cell >= start)
    if end < size:
        facts.append(cell < end)
    return logical_and(*facts)


def _outside(cell: Expr, start: int, end: int, size: int) -> Expr:
    if end - start == 1:
        return compare(CompareOp.NE, cell, const(start))
    if start == 0:
        return cell >= end
    return cell < start if end == size else logical_or(cell < start, cell >= end)


def _row_major(mask: Mask, cells: list[Expr]) -> Expr | None:
    """A threshold on the row-major offset, in some order of the axes, where the mask is one."""
    count = int(mask.sum())
    for order in permutations(range(mask.ndim)) if mask.ndim <= 3 else [tuple(range(mask.ndim))]:
        turned = mask.transpose(order)
        flat = turned.reshape(-1)
        if not (flat[-count:].all() or flat[:count].all()):
            continue
        terms: list[tuple[int, Expr | None]] = []
        weight = 1
        for axis in reversed(order):
            terms.append((weight, cells[axis]))
            weight *= mask.shape[axis]
        total = join(list(reversed(terms)))
        return total >= mask.size - count if flat[-count:].all() else total < count
    return None


def _equal_rows(rows: Mask) -> Ints:
    """A number for every row: equal rows have equal numbers, counted from 0 in the rows' lexicographic order."""
    packed = np.packbits(rows, axis=1)
    if packed.shape[1] <= 8:
        words = np.zeros((len(rows), 8), dtype=np.uint8)
        words[:, : packed.shape[1]] = packed
        return np.unique(words.view(">u8").reshape(-1), return_inverse=True)[1].reshape(-1)
    keys = [row.tobytes() for row in packed]
    ranks = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    return np.array([ranks[key] for key in keys], dtype=np.int64)


def _by_slices(mask: Mask, cells: list[Expr], budget: list[int]) -> Expr:
    best: tuple[int, int] | None = None
    groups: dict[int, Ints] = {}
    for axis in range(mask.ndim):
        groups[axis] = _equal_rows(np.moveaxis(mask, axis, 0).reshape(mask.shape[axis], -1))
        count = int(groups[axis].max()) + 1
        best = (count, axis) if best is None or count < best[0] else best
    assert best is not None
    axis = best[1]
    rest = cells[:axis] + cells[axis + 1 :]
    terms: list[Expr] = []
    for group in range(best[0]):
        members = groups[axis] == group
        inner = _slice(mask, int(np.flatnonzero(members)[0]), axis)
        if not inner.any():
            continue
        _spend(budget)
        where = _one_axis(members, cells[axis], budget)
        deeper = _describe(inner, rest, budget)
        terms.append(where if deeper == TRUE else logical_and(where, deeper))
    return balanced(LogicalOp.OR, terms)


_MANY = 1 << 16
_FEW = 3
_SAMPLE = 256
_SAFE = 1 << 62


def balanced_sum(terms: Sequence[Expr]) -> Expr:
    """The sum of the terms in a tree of small depth."""
    if len(terms) == 1:
        return terms[0]
    middle = len(terms) // 2
    return balanced_sum(terms[:middle]) + balanced_sum(terms[middle:])


def values_of(offsets: Ints, values: Ints, box: Sequence[int], cells: Sequence[Expr]) -> Expr:
    """An expression over the cells with `values[k]` at row-major offset `offsets[k]`, anything elsewhere.

    It evaluates without a trap on the whole box. Raises TooManyPieces.
    """
    if prod(box) > _SAFE:
        raise TooManyPieces("a box of more than 2**62 cells")
    coordinates = np.unravel_index(offsets, tuple(box))
    linear = _affine(coordinates, values, cells)
    if linear is not None:
        return linear
    best: tuple[_Pieces, Expr] | None = None
    fewest = MAX_PIECES + 1
    orders = permutations(range(len(box))) if len(box) <= 3 and len(offsets) <= _MANY else [tuple(range(len(box)))]
    for order in orders:
        if fewest <= _FEW:
            break
        turned = np.zeros(len(offsets), dtype=np.int64)
        terms: list[tuple[int, Expr | None]] = []
        weight = prod(box)
        for axis in order:
            weight //= box[axis]
            turned = turned + weight * coordinates[axis]
            if box[axis] > 1:
                terms.append((weight, cells[axis]))
        ranks = np.argsort(turned)
        found = _pieces(turned[ranks], values[ranks], prod(box), fewest)
        if found is not None:
            fewest, best = found.cost, (found, join(terms))
    if best is None:
        raise TooManyPieces(f"more than {MAX_PIECES} pieces")
    return best[0].expr(best[1])


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Linear pieces `(first position, slope, intercept)`, over `size` positions, or a period with a rise."""

    pieces: list[tuple[int, int, int]]
    size: int
    period: int | None = None
    rise: int = 0

    @property
    def cost(self) -> int:
        """How long the text is, in pieces."""
        return len(self.pieces) + (self.period is not None)

    def expr(self, position: Expr) -> Expr:
        """The values over the position."""
        if self.period is None:
            return _stepped(self.pieces, self.size, position)
        repeated = _stepped(self.pieces, self.period, position % self.period)
        return join([(1, repeated), (self.rise, position // self.period)]) if self.rise else repeated


def _affine(coordinates: Sequence[Ints], values: Ints, cells: Sequence[Expr]) -> Expr | None:
    """`values` as an integer combination of the coordinates and a constant, where they are one."""
    columns = np.stack([*coordinates, np.ones(len(values), dtype=np.int64)], axis=1).astype(np.float64)
    sample = np.linspace(0, len(values) - 1, min(len(values), 64)).astype(np.int64)
    solution = np.linalg.lstsq(columns[sample], values[sample].astype(np.float64), rcond=None)[0]
    *factors, constant = (int(f) for f in np.rint(solution))
    if sum(abs(f) * int(c.max()) for f, c in zip(factors, coordinates, strict=True)) + abs(constant) >= _SAFE:
        return None  # the products would wrap
    total = sum((f * c for f, c in zip(factors, coordinates, strict=True)), np.full(len(values), constant))
    if not (total == values).all():
        return None
    terms: list[tuple[int, Expr | None]] = [(f, c) for f, c in zip(factors, cells, strict=True) if f]
    if constant:
        terms.append((constant, None))
    return join(terms)


def _segments(offsets: Ints, values: Ints, limit: int) -> list[tuple[int, int, int]] | None:
    """Linear pieces `(first offset, slope, intercept)`, greedily the longest; None past `limit` of them."""
    if len(offsets) == 1:
        return [(int(offsets[0]), 0, int(values[0]))] if limit > 0 else None
    runs, rises = np.diff(offsets), np.diff(values)
    whole = rises % runs == 0
    slopes = np.where(whole, rises // runs, 0)
    breaks = np.flatnonzero((slopes[1:] != slopes[:-1]) | ~whole[1:] | ~whole[:-1]) + 1
    result: list[tuple[int, int, int]] = []
    k, last = 0, len(offsets) - 1
    while k <= last:
        if len(result) >= limit:
            return None
        t, x = int(offsets[k]), int(values[k])
        if k == last or not whole[k]:
            result.append((t, 0, x))
            k += 1
            continue
        slope = int(slopes[k])
        result.append((t, slope, x - slope * t))
        following = int(np.searchsorted(breaks, k, side="right"))
        k = (int(breaks[following]) if following < len(breaks) else last) + 1
    return result


def _pieces(offsets: Ints, values: Ints, size: int, limit: int) -> _Pieces | None:
    """The values as pieces over their positions, perhaps repeating with a period, that cost less than `limit`."""
    found: _Pieces | None = None
    plain = _segments(offsets, values, limit - 1)
    if plain is not None:
        found, limit = _Pieces(plain, size), len(plain)
    for period in range(2, min(PERIODS, size // 2) + 1 if len(offsets) <= _MANY else 2):
        if limit <= _FEW:
            break
        rise = _rise(offsets, values, period)
        if rise is None:
            continue
        residues, first = np.unique(offsets % period, return_index=True)
        base = values[first] - rise * (offsets[first] // period)
        pieces = _segments(residues, base, limit - 2)
        if pieces is not None:
            found = _Pieces(pieces, size, period, rise)
            limit = found.cost
    return found


def _rise(offsets: Ints, values: Ints, period: int) -> int | None:
    """`c` with `value(t) == c * (t // period) + f(t % period)` on all the points, if there is one."""
    steps, rises = _steps(offsets[:_SAMPLE], values[:_SAMPLE], period)
    if len(steps) and _common_rise(steps, rises) is None:
        return None  # the first points already differ
    if len(offsets) > _SAMPLE:
        steps, rises = _steps(offsets, values, period)
    return _common_rise(steps, rises) if len(steps) else None


def _steps(offsets: Ints, values: Ints, period: int) -> tuple[Ints, Ints]:
    """From each point to the next of its residue: the periods, and the change of value. Offsets are ascending."""
    residue, quotient = offsets % period, offsets // period
    order = np.argsort(residue.astype(np.uint8), kind="stable")
    r, q, v = residue[order], quotient[order], values[order]
    same = r[1:] == r[:-1]
    return (q[1:] - q[:-1])[same], (v[1:] - v[:-1])[same]


def _common_rise(steps: Ints, rises: Ints) -> int | None:
    if rises[0] % steps[0]:
        return None
    rise = int(rises[0] // steps[0])
    return rise if (rises == rise * steps).all() else None


def _stepped(pieces: list[tuple[int, int, int]], size: int, position: Expr) -> Expr:
    """The sum of the first piece and of the changes at the later ones, each behind its step."""
    _, slope, intercept = pieces[0]
    terms = [_line(slope, intercept, position)] if slope or intercept or len(pieces) == 1 else []
    for (_, slope_before, intercept_before), (start, slope, intercept) in pairwise(pieces):
        step = join([(1, position), (size - start, None)]) // size
        rise, lift = slope - slope_before, intercept - intercept_before
        terms.append(join([(lift, step)]) if rise == 0 else step * _line(rise, lift, position))
    return balanced_sum(terms)


def _line(slope: int, intercept: int, position: Expr) -> Expr:
    parts: list[tuple[int, Expr | None]] = [(slope, position)] if slope else []
    if intercept or not parts:
        parts.append((intercept, None))
    return join(parts)
