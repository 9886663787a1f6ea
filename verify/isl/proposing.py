"""Sets and relations for searches: sample points for runs, and for a witness or a layout the parts of a relation, what
they determine, and their expressions. Nothing rests on it: the checker decides on the proposals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from layoutproof.ir.expr import Expr, Var
from layoutproof.verify.isl.dataflow import Dataflow
from layoutproof.verify.isl.decode import Decoder, pieces_of
from layoutproof.verify.isl.instance_sets import Link, Points, Relation
from layoutproof.verify.isl.operations import bounds_of, coalesced, function_of, maps_of
from layoutproof.verify.isl.space import NamedSpace, integer, isl, value
from layoutproof.verify.program.statement import NotModelled

_PIECES = 6
_SMALL = (8, 40)  # upper bounds of symbols, where possible


@dataclass(frozen=True, slots=True)
class Sampled:
    """One point: its coordinates, and the symbols' values by name."""

    coordinates: tuple[int, ...]
    symbols: dict[str, int]


def some_points(points: Points, most: int) -> list[Sampled]:
    """At most so many different points of a set: first, last, middle ones of its pieces; small symbols if possible."""
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


# The number of pieces that are tried for the expression of a whole function.
_FIRST = 3


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of a function: where it holds, and the coordinates of its value over the space asked with."""

    where: Points
    outputs: tuple[Expr, ...]


def by_pair(relation: Relation) -> dict[tuple[str, str], Link]:
    """The nonempty parts of a relation, by the names of their two tuples, in alphabetical order."""
    found: dict[tuple[str, str], Link] = {}
    for each in maps_of(relation):
        key = _name(each, isl.dim_type.in_), _name(each, isl.dim_type.out)
        found[key] = found[key].union(each) if key in found else each
    return {key: found[key] for key in sorted(found) if not found[key].is_empty()}


def _name(link: Link, kind: isl.dim_type) -> str:
    return str(link.get_tuple_name(kind)) if link.has_tuple_name(kind) else ""


def in_relation(link: Link) -> Relation:
    """One link as a relation."""
    return isl.UnionMap.from_map(link)


def every_pair(domain: Points, target: Points) -> Link:
    """All pairs of a point of the one set and a point of the other."""
    return isl.Map.from_domain_and_range(domain, target)


def determines(link: Link, position: int) -> bool:
    """Whether one coordinate of the target is a function of the point that a link leads from."""
    return bool(coordinate(link, position).is_single_valued())


def leaves_open(link: Link, position: int) -> bool:
    """Whether a link leaves a source coordinate free: all values of it go with each target."""
    back = coordinate(link.reverse(), position)
    domain, values = back.domain(), back.range()
    return bool(every_pair(domain, values).is_subset(back)) and not bool(values.is_singleton())


def with_places(link: Link, seed: Link, positions: Sequence[int]) -> Link:
    """The part of a link that leads from points whose coordinates at `positions` are those of a point of `seed`."""
    kept = seed.domain()
    for other in range(kept.dim(isl.dim_type.set)):
        if other not in positions:
            kept = kept.eliminate(isl.dim_type.set, other, 1)
    return link.intersect_domain(kept)


def coordinate(link: Link, position: int) -> Link:
    """From where a link leads, to one coordinate of where it leads to."""
    for other in reversed(range(link.dim(isl.dim_type.out))):
        if other != position:
            link = link.project_out(isl.dim_type.out, other, 1)
    return link


def with_coordinate(seed: Link, position: int) -> tuple[Link, bool] | None:
    """All pairs of points that agree in the target's coordinate `position` with the one expression that `seed`, a
    function, has for it, and whether that is a constant; None where it takes several expressions.
    """
    for aff in (formula.get_aff(position) for formula in _formulas(seed)):
        pairs = _equal_to(aff, seed, position)
        if seed.is_subset(pairs):
            return pairs, not aff.involves_dims(isl.dim_type.in_, 0, aff.dim(isl.dim_type.in_))
    return None


def _formulas(link: Link) -> Iterator[isl.MultiAff]:
    """The function on its first pieces, each as one expression. To ask for all of it at once takes isl long."""
    for piece in link.get_basic_maps()[:_FIRST]:
        found = pieces_of(isl.PwMultiAff.from_map(isl.Map.from_basic_map(piece).reset_tuple_id(isl.dim_type.out)))
        if len(found) == 1:
            yield found[0][1]


def _formula(link: Link) -> tuple[isl.MultiAff, Link] | None:
    """One expression for all of a function, and all pairs of points for which it holds; None where it takes several."""
    for formula in _formulas(link):
        graph = isl.Map.from_multi_aff(formula).set_tuple_name(isl.dim_type.out, _name(link, isl.dim_type.out))
        if link.is_subset(graph):
            return formula, graph
    return None


def _pieces(link: Link) -> Sequence[tuple[Points, isl.MultiAff]]:
    """A single-valued link as a function, piece by piece."""
    whole = _formula(link)
    if whole is not None:
        return [(coalesced(link.domain()), whole[0])]
    return pieces_of(function_of(link.reset_tuple_id(isl.dim_type.out)))


def _equal_to(aff: isl.Aff, seed: Link, position: int) -> Link:
    target = isl.LocalSpace.from_space(seed.range().get_space())
    coordinate = isl.Map.from_aff(isl.Aff.var_on_domain(target, isl.dim_type.set, position))
    return isl.Map.from_aff(aff).apply_range(coordinate.reverse())


def widened(link: Link, within: Link) -> Link | None:
    """All pairs of `within` on which the one expression of a link on some points holds; None for several."""
    whole = _formula(link)
    return None if whole is None else coalesced(whole[1].intersect_domain(within.domain()).intersect(within))


def functions_of(link: Link, space: NamedSpace, variables: Mapping[str, Expr]) -> list[Piece]:
    """A single-valued link piece by piece; `space` names source coordinates, `variables` are their expressions."""
    decoder = Decoder(space, dict(variables))
    size = link.dim(isl.dim_type.out)
    return [
        Piece(where, tuple(decoder.affine(piece.get_aff(k)) for k in range(size))) for where, piece in _pieces(link)
    ]


def condition_on(where: Points, whole: Points, space: NamedSpace, variables: Mapping[str, Expr]) -> Expr | None:
    """The condition that tells the points of `where` from the others of `whole`; None where it is all of them."""
    if bool(whole.is_subset(where)):
        return None
    told = coalesced(where.gist(whole))
    return Decoder(space, dict(variables)).condition(told.reset_tuple_id() if told.has_tuple_id() else told)


def read_as_condition(link: Link, among: Link, names: Sequence[str], symbols: Sequence[str]) -> Expr:
    """A condition that tells the pairs of a link from the others of `among`, over the coordinates of source, then
    target, which have these names.
    """
    told = coalesced(link.gist(among)).reset_tuple_id(isl.dim_type.in_).reset_tuple_id(isl.dim_type.out)
    flat = told.wrap().flatten()
    space = NamedSpace(flat.get_ctx(), names, symbols)
    return Decoder(space, {name: Var(name) for name in names}).condition(flat)


def identity_on(points: Points) -> Relation:
    """Each point with itself."""
    return isl.UnionMap.from_map(isl.Map.identity(isl.Space.map_from_set(points.get_space())).intersect_domain(points))


def part_between(relation: Relation, first: str, second: str) -> Link | None:
    """The part of a relation from the tuple `first` to the tuple `second`; None where it has none."""
    found: Link | None = None
    for each in maps_of(relation):
        if each.get_tuple_name(isl.dim_type.in_) == first and each.get_tuple_name(isl.dim_type.out) == second:
            found = each if found is None else found.union(each)
    return found if found is not None and not found.is_empty() else None


def called(link: Link, first: str, second: str) -> Link:
    """The link with new tuple names."""
    return link.set_tuple_name(isl.dim_type.in_, first).set_tuple_name(isl.dim_type.out, second)


def at_point(link: Link, point: Sequence[int], symbols: Sequence[int] = ()) -> Link:
    """The part of a link that leads from one point, for these values of the symbols."""
    for kind, numbers in ((isl.dim_type.in_, point), (isl.dim_type.param, symbols)):
        for position, number in enumerate(numbers):
            link = link.fix_val(kind, position, value(link.get_ctx(), number))
    return link


def in_one_run(order: Relation, points: Callable[[str], Points]) -> Relation:
    """The linear equations that hold, both ways round, between all points that `order` relates: what the instances of
    one run have in common, without their order. `points` gives all points of a tuple.
    """
    result = isl.UnionMap.empty(order.get_space())
    for (first, second), each in by_pair(order.union(order.reverse())).items():
        hull = isl.Map.from_basic_map(each.affine_hull())
        common = hull.intersect_domain(points(first)).intersect_range(points(second))
        result = result.union(isl.UnionMap.from_map(common))
    return result


def span(link: Link) -> tuple[int, int] | None:
    """The least and the greatest value of a link to single numbers; None if symbols decide, or it is empty."""
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


def touched(flow: Dataflow, name: str) -> Points:
    """The cells of a memory that a program reads or writes. Raises NotModelled where it does not touch the memory."""
    found: Points | None = None
    for statement in flow.statements.statements:
        accesses = [flow.access(statement)] if statement.data.name == name else []
        accesses += [flow.access(read, statement) for read in statement.reads if read.data.name == name]
        for access in accesses:
            found = access.range() if found is None else found.union(access.range())
    if found is None:
        raise NotModelled(f"the memory {name} is not touched", None)
    return coalesced(found)


def lowest(points: Points) -> list[int] | None:
    """The least value of each coordinate of a set; None if it is empty, or one depends on symbols."""
    if points.is_empty():
        return None
    found: list[int] = []
    for k in range(points.dim(isl.dim_type.set)):
        bounds = bounds_of(points.dim_min(k))
        if bounds is None or bounds[0] != bounds[1]:
            return None
        found.append(bounds[0])
    return found
