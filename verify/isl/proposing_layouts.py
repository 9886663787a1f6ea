"""What a search for layouts asks of relations between cells and instances, beside what is in `proposing.py`.

Nothing rests on it: what comes of it is a claim, which the checker accepts or refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from layoutproof.verify.isl.library import isl
from layoutproof.verify.isl.pairing import Link, Points, Relation
from layoutproof.verify.isl.proposing import by_pair, coordinate
from layoutproof.verify.isl.space import integer, value

__all__ = ["at_point", "called", "coordinate", "identity_on", "in_one_run", "is_inside", "none_of", "part_between", "span"]


def identity_on(points: Points) -> Relation:
    """Each point with itself."""
    return isl.UnionMap.from_map(isl.Map.identity(isl.Space.map_from_set(points.get_space())).intersect_domain(points))


def part_between(relation: Relation, first: str, second: str) -> Link | None:
    """The part of a relation from the tuple `first` to the tuple `second`; None where it has none."""
    parts = relation.get_map_list()
    found: Link | None = None
    for each in (parts.get_at(k) for k in range(parts.n_map())):
        if each.get_tuple_name(isl.dim_type.in_) == first and each.get_tuple_name(isl.dim_type.out) == second:
            found = each if found is None else found.union(each)
    return found if found is not None and not found.is_empty() else None


def called(link: Link, first: str, second: str) -> Link:
    """The link with its tuples called so."""
    return link.set_tuple_name(isl.dim_type.in_, first).set_tuple_name(isl.dim_type.out, second)


def at_point(link: Link, point: Sequence[int], symbols: Sequence[int] = ()) -> Link:
    """The part of a link that leads from one point, for these values of the symbols."""
    for kind, numbers in ((isl.dim_type.in_, point), (isl.dim_type.param, symbols)):
        for position, number in enumerate(numbers):
            link = link.fix_val(kind, position, value(link.get_ctx(), number))
    return link


def in_one_run(order: Relation, points: Callable[[str], Points]) -> Relation:
    """A relation that holds, both ways round, between all that `order` relates, and says only what linear equations say of it: what the
    instances of one run have in common, without their order. `points` gives all points of a tuple.
    """
    result = isl.UnionMap.empty(order.get_space())
    for (first, second), each in by_pair(order.union(order.reverse())).items():
        common = isl.Map.from_basic_map(each.affine_hull()).intersect_domain(points(first)).intersect_range(points(second))
        result = result.union(isl.UnionMap.from_map(common))
    return result


def span(link: Link) -> tuple[int, int] | None:
    """The least and the greatest number that a link to single numbers leads to; None where symbols decide, or there is none."""
    values = link.range()
    if values.is_empty() or not values.is_bounded():
        return None
    ends = values.lexmin(), values.lexmax()
    if not all(end.is_singleton() for end in ends):
        return None
    low, high = (integer(end.sample_point().get_coordinate_val(isl.dim_type.set, 0)) for end in ends)
    return low, high


def none_of(link: Link) -> Link:
    """The empty link between the same tuples."""
    return isl.Map.empty(link.get_space())


def is_inside(link: Link, allowed: Link) -> bool:
    """Whether a link stays within another one at the points from which that one leads somewhere."""
    return bool(link.intersect_domain(allowed.domain()).is_subset(allowed))
