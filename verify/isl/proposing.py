"""What a search for a witness asks of relations between instances: their parts, what they determine, and how they read.

Nothing rests on it: what comes of it is a claim, which the checker accepts or refuses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from layoutproof.ir.expr import Expr, Var
from layoutproof.verify.isl.coalesce import coalesced
from layoutproof.verify.isl.decode import Decoder, pieces_of
from layoutproof.verify.isl.extremes import function_of
from layoutproof.verify.isl.library import isl
from layoutproof.verify.isl.pairing import Link, Points, Relation, Sources
from layoutproof.verify.isl.space import NamedSpace

# So many pieces of a function are asked for the expression that it is.
_FIRST = 3


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of a function: where it holds, and the coordinates of its value, as expressions over the space that was asked with."""

    where: Points
    outputs: tuple[Expr, ...]


def by_pair(relation: Relation) -> dict[tuple[str, str], Link]:
    """The parts of a relation that are not empty, by the names of the tuples that they lead from and to, in alphabetical order."""
    parts = relation.get_map_list()
    found: dict[tuple[str, str], Link] = {}
    for each in (parts.get_at(k) for k in range(parts.n_map())):
        key = _name(each, isl.dim_type.in_), _name(each, isl.dim_type.out)
        found[key] = found[key].union(each) if key in found else each
    return {key: found[key] for key in sorted(found) if not found[key].is_empty()}


def _name(link: Link, kind: isl.dim_type) -> str:
    return str(link.get_tuple_name(kind)) if link.has_tuple_name(kind) else ""


def in_relation(link: Link) -> Relation:
    """One link as a relation."""
    return isl.UnionMap.from_map(link)


def sets_of(points: Sources) -> Sequence[Points]:
    """The sets of a union."""
    parts = points.get_set_list()
    return [parts.get_at(k) for k in range(parts.n_set())]


def every_pair(domain: Points, target: Points) -> Link:
    """All pairs of a point of the one set and a point of the other."""
    return isl.Map.from_domain_and_range(domain, target)


def determines(link: Link, position: int) -> bool:
    """Whether one coordinate of the target is a function of the point that a link leads from."""
    return bool(coordinate(link, position).is_single_valued())


def leaves_open(link: Link, position: int) -> bool:
    """Whether a link says nothing of a coordinate of the points that it leads from: all values of it go with each target."""
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
    """All pairs of points that have the target's coordinate `position` in common with what one expression gives on all of `seed`, a
    function, and whether that is a constant; None where it takes several expressions.
    """
    for aff in (formula.get_aff(position) for formula in _formulas(seed)):
        pairs = _equal_to(aff, seed, position)
        if seed.is_subset(pairs):
            return pairs, not aff.involves_dims(isl.dim_type.in_, 0, aff.dim(isl.dim_type.in_))
    return None


def _formulas(link: Link) -> Iterator[isl.MultiAff]:
    """What a function is on the first of its pieces, each as one expression. To ask for all of a function at once takes isl long."""
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
    return pieces_of(function_of(link.reset_tuple_id(isl.dim_type.out))) if whole is None else [(coalesced(link.domain()), whole[0])]


def _equal_to(aff: isl.Aff, seed: Link, position: int) -> Link:
    target = isl.LocalSpace.from_space(seed.range().get_space())
    coordinate = isl.Map.from_aff(isl.Aff.var_on_domain(target, isl.dim_type.set, position))
    return isl.Map.from_aff(aff).apply_range(coordinate.reverse())


def widened(link: Link, within: Link) -> Link | None:
    """All pairs of `within` on which the one expression holds that a link is on some points; None where it takes several."""
    whole = _formula(link)
    return None if whole is None else coalesced(whole[1].intersect_domain(within.domain()).intersect(within))


def functions_of(link: Link, space: NamedSpace, variables: Mapping[str, Expr]) -> list[Piece]:
    """A single-valued link piece by piece; `space` names the coordinates that it leads from, `variables` what they read as."""
    decoder = Decoder(space, dict(variables))
    size = link.dim(isl.dim_type.out)
    return [Piece(where, tuple(decoder.affine(piece.get_aff(k)) for k in range(size))) for where, piece in _pieces(link)]


def condition_on(where: Points, whole: Points, space: NamedSpace, variables: Mapping[str, Expr]) -> Expr | None:
    """What tells the points of `where` from the others of `whole`; None where it is all of them."""
    if bool(whole.is_subset(where)):
        return None
    told = coalesced(where.gist(whole))
    return Decoder(space, dict(variables)).condition(told.reset_tuple_id() if told.has_tuple_id() else told)


def read_as_condition(link: Link, among: Link, names: Sequence[str], symbols: Sequence[str]) -> Expr:
    """What tells the pairs of a link from the others of `among`, as a condition on the coordinates of both points, which have these names,
    those of the point that it leads from first.
    """
    told = coalesced(link.gist(among)).reset_tuple_id(isl.dim_type.in_).reset_tuple_id(isl.dim_type.out)
    flat = told.wrap().flatten()
    space = NamedSpace(flat.get_ctx(), names, symbols)
    return Decoder(space, {name: Var(name) for name in names}).condition(flat)
