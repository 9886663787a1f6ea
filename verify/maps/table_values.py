"""Expressions from tables of values, for inverses without a closed form: given values on given cells, by linear pieces.
Part of the trusted computing base.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from math import prod
from typing import TYPE_CHECKING

from layoutproof.ir.expr import Expr
from layoutproof.verify.algebra.lift import join
from layoutproof.verify.maps.tables import MAX_PIECES, PERIODS, Ints, TooManyPieces

if TYPE_CHECKING:
    import numpy as np
else:
    from layoutproof.ir.late import np


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
