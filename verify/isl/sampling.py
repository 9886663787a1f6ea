"""A few points of a set, for runs that look where a proof got stuck. Nothing rests on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from layoutproof.verify.isl.library import isl
from layoutproof.verify.isl.pairing import Points
from layoutproof.verify.isl.space import integer, value

_PIECES = 6
_SMALL = (8, 40)  # what symbols are at most, where they can be


@dataclass(frozen=True, slots=True)
class Sampled:
    """One point: its coordinates, and the symbols' values by name."""

    coordinates: tuple[int, ...]
    symbols: dict[str, int]


def some_points(points: Points, most: int) -> list[Sampled]:
    """Different points of a set, at most so many: of its pieces, its first and last ones, and in the middle; symbols small if they can."""
    for bound in _SMALL if points.dim(isl.dim_type.param) else ():
        small = points
        for k in range(points.dim(isl.dim_type.param)):
            small = small.upper_bound_val(isl.dim_type.param, k, value(points.get_ctx(), bound))
        if not small.is_empty():
            points = small
            break
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], Sampled] = {}
    for part in _parts(points):
        if not part.is_empty():
            sampled = _read(part.sample_point())
            found.setdefault((sampled.coordinates, tuple(sampled.symbols.values())), sampled)
        if len(found) >= most:
            break
    return list(found.values())


def only_at(points: Points, sampled: list[Sampled]) -> Points:
    """The part of a set that consists of some of its points."""
    result = points.subtract(points)
    for each in sampled:
        part = points
        for k, number in enumerate(each.coordinates):
            part = part.fix_val(isl.dim_type.set, k, value(points.get_ctx(), number))
        for k, number in enumerate(each.symbols.values()):
            part = part.fix_val(isl.dim_type.param, k, value(points.get_ctx(), number))
        result = result.union(part)
    return result


def _parts(points: Points) -> Iterator[Points]:
    """Subsets of which each is good for one point."""
    pieces = [isl.Set.from_basic_set(piece) for piece in points.get_basic_sets()[:_PIECES]]
    yield from pieces
    yield points.lexmin()
    yield points.lexmax()
    for piece in pieces:
        yield from (piece.lexmin(), piece.lexmax())
    for first, last in ((piece.lexmin(), piece.lexmax()) for piece in pieces):
        ends = _read(first.sample_point()), _read(last.sample_point())
        for k, (low, high) in enumerate(zip(ends[0].coordinates, ends[1].coordinates, strict=True)):
            if low + 1 < high:
                yield points.lower_bound_val(isl.dim_type.set, k, value(points.get_ctx(), (low + high) // 2))


def _read(point: isl.Point) -> Sampled:
    space = point.get_space()
    names = [str(space.get_dim_name(isl.dim_type.param, k)) for k in range(space.dim(isl.dim_type.param))]
    symbols = {name: integer(point.get_coordinate_val(isl.dim_type.param, k)) for k, name in enumerate(names)}
    coordinates = (integer(point.get_coordinate_val(isl.dim_type.set, k)) for k in range(space.dim(isl.dim_type.set)))
    return Sampled(tuple(coordinates), symbols)
