"""That two relations lead to one source, said as claims that other solvers can confirm.

The relations themselves are taken as integer sets have them; that the pairing carries one to the other is what is claimed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from layoutproof.ir.expr import FALSE, Expr, Not, Var, equal, logical_and, logical_or
from layoutproof.ir.subst import substitute
from layoutproof.verify.evidence import Evidence, Gathered, NoInstance, Setting, Several, Unsaid
from layoutproof.verify.instances import Scene
from layoutproof.verify.isl.coalesce import coalesced
from layoutproof.verify.isl.decode import Decoder
from layoutproof.verify.isl.library import isl
from layoutproof.verify.isl.pairing import Points, Relation
from layoutproof.verify.isl.space import BudgetExceeded, NamedSpace, limited

_ENGINE = "isl"
_MOST_PIECES = 24
_OPERATIONS = 500_000


def note_agreement(gathered: Gathered, what: str, found: Relation, carry: Relation, wanted: Relation, points: Points) -> None:
    """Gather that `carry` takes what `found` leads to from each of `points` to what `wanted` leads to."""
    if gathered.is_recording and not points.is_empty():
        gathered.record(Several(what, partial(_evidence_of, _exceptions, found, carry, wanted, points)))


def note_contributions(gathered: Gathered, what: str, found: Relation, carry: Relation, wanted: Relation, points: Points) -> None:
    """Gather that `carry` takes all that `found` leads to from each of `points` to all that `wanted` leads to."""
    if gathered.is_recording and not points.is_empty():
        gathered.record(Several(what, partial(_evidence_of, _missing, found, carry, wanted, points)))


def note_function(gathered: Gathered, what: str, link: isl.Map, dims: Sequence[Var], outputs: Sequence[Expr], points: Points) -> None:
    """Gather that a relation leads from each of `points` to the values of `outputs`, which speak of `dims`."""
    if gathered.is_recording and not points.is_empty():
        gathered.record(Several(what, partial(_evidence_of_function, link, dims, outputs, points)))


_Exceptions = Callable[[Relation, Relation, Relation, Points], list[tuple[Expr, ...]]]


def _evidence_of(exceptions: _Exceptions, found: Relation, carry: Relation, wanted: Relation, points: Points) -> list[Evidence]:
    try:
        with limited(_OPERATIONS, points.get_ctx()):
            # Where both lead nowhere there is nothing to ask.
            either = tuple(exceptions(found, carry, wanted, points))
            return [NoInstance(Setting(), Scene(), either, _ENGINE)] if either else []
    except BudgetExceeded as problem:
        raise Unsaid(str(problem)) from problem
    except ValueError as problem:
        raise Unsaid(f"a number is too large: {problem}") from problem


def _evidence_of_function(link: isl.Map, dims: Sequence[Var], outputs: Sequence[Expr], points: Points) -> list[Evidence]:
    try:
        with limited(_OPERATIONS, points.get_ctx()):
            here, there = _names("p", len(dims)), _names("x", len(outputs))
            inside, leads = _said(points, here), _said(link.wrap().flatten(), [*here, *there])
            values = dict(zip(dims, here, strict=True))
            same = logical_and(*(equal(v, substitute(output, values)) for v, output in zip(there, outputs, strict=True)))
            nowhere = Not(_said(link.domain(), here))
            return [NoInstance(Setting(), Scene(), ((inside, nowhere), (inside, leads, Not(same))), _ENGINE)]
    except BudgetExceeded as problem:
        raise Unsaid(str(problem)) from problem
    except ValueError as problem:
        raise Unsaid(f"a number is too large: {problem}") from problem


def _exceptions(found: Relation, carry: Relation, wanted: Relation, points: Points) -> list[tuple[Expr, ...]]:
    """What would have to hold somewhere if the claim were wrong: a point that leads nowhere, or two sources that are not carried one to
    the other.
    """
    here = _names("p", points.dim(isl.dim_type.set))
    inside = _said(points, here)
    mine, theirs = _from(found, points), _from(wanted, points)
    either: list[tuple[Expr, ...]] = []
    for each in (mine, theirs):
        either.append((inside, Not(logical_or(FALSE, *(_said(relation.domain(), here) for relation in each)))))
    for first in mine:
        ours = _names("x", first.dim(isl.dim_type.out))
        for second in theirs:
            others = _names("z", second.dim(isl.dim_type.out))
            pairs = carry.extract_map(_between(first.range().get_space(), second.range().get_space()))
            carried = _said(pairs.wrap().flatten(), [*ours, *others]) if not pairs.is_empty() else FALSE
            leads = [_said(relation.wrap().flatten(), [*here, *names]) for relation, names in ((first, ours), (second, others))]
            either.append((inside, *leads, Not(carried)))
    return either


def _missing(found: Relation, carry: Relation, wanted: Relation, points: Points) -> list[tuple[Expr, ...]]:
    """The same for all that two relations lead to: something that is carried to nothing that is wanted, or that nothing is carried to."""
    here = _names("p", points.dim(isl.dim_type.set))
    inside = _said(points, here)
    either: list[tuple[Expr, ...]] = []
    for relation, other, way in ((found, wanted, carry), (wanted, found, carry.reverse())):
        for first in _from(relation, points):
            ours = _names("x", first.dim(isl.dim_type.out))
            leads = _said(first.wrap().flatten(), [*here, *ours])
            ways = _from(way, first.range())
            either.append((inside, leads, Not(logical_or(FALSE, *(_said(each.domain(), ours) for each in ways)))))
            for each in ways:
                others = _names("z", each.dim(isl.dim_type.out))
                there = other.extract_map(_between(points.get_space(), each.range().get_space()))
                said = _said(there.wrap().flatten(), [*here, *others]) if not there.is_empty() else FALSE
                either.append((inside, leads, _said(each.wrap().flatten(), [*ours, *others]), Not(said)))
    return either


def _from(relation: Relation, points: Points) -> list[isl.Map]:
    maps: list[isl.Map] = []
    relation.intersect_domain(isl.UnionSet.from_set(points)).foreach_map(maps.append)
    return sorted((coalesced(each) for each in maps), key=str)


def _between(first: isl.Space, second: isl.Space) -> isl.Space:
    return first.map_from_domain_and_range(second)


def _names(letter: str, count: int) -> list[Var]:
    return [Var(f"{letter}.{axis}") for axis in range(count)]


def _said(points: isl.Set, variables: Sequence[Var]) -> Expr:
    """A set as a condition over the variables, one for each dim. Raises Unsaid where it takes too many cases."""
    if points.n_basic_set() > _MOST_PIECES:
        raise Unsaid(f"the sources take {points.n_basic_set()} cases to tell")
    params = [points.get_dim_name(isl.dim_type.param, k) or "" for k in range(points.dim(isl.dim_type.param))]
    names = [f"dim {axis}" for axis in range(len(variables))]
    space = NamedSpace(points.get_ctx(), names, params)
    return Decoder(space, dict(zip(names, variables, strict=True))).condition(points.reset_tuple_id() if points.has_tuple_id() else points)
