"""Answers of integer sets as claims that other solvers can confirm without quantifiers: which relation reaches a point,
that two relations lead to one source, and that the last write found is the last. Nothing rests on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias

from layoutproof.ir.expr import FALSE, Expr, Not, Var, const, equal, logical_and, logical_or
from layoutproof.ir.visit import substitute
from layoutproof.verify.isl.decode import Decoder, pieces_of
from layoutproof.verify.isl.instance_sets import Points, Relation
from layoutproof.verify.isl.last_writer import LastWrite, Timestamp
from layoutproof.verify.isl.operations import coalesced, function_of, least, maps_of
from layoutproof.verify.isl.space import BudgetExceeded, NamedSpace, isl, limited
from layoutproof.verify.program.evidence import Evidence, Gathered, NoInstance, Setting, Several, Unstated, Witness
from layoutproof.verify.program.instances import IterationDomain

# A cover: its number, the names of all its dimensions, its points.
Reaching: TypeAlias = "tuple[int, tuple[str, ...], isl.Set]"


def choose_witnesses(space: NamedSpace, points: isl.Set, covers: Sequence[Reaching]) -> list[Witness]:
    """For each cover and the points that earlier ones left: the least further coordinates, piece by piece.

    `space` names the coordinates of the points, which every cover has too. Raises Unstated for numbers that are too
    large to write down, and NoAnswer.
    """
    decoder = Decoder(space)
    left = points
    found: list[Witness] = []
    for number, names, reached in covers:
        if left.is_empty():
            break
        relation, further = _relation(space, names, reached)
        relation = relation.intersect_domain(left)
        for _, piece in pieces_of(function_of(least(relation))):
            try:
                found.append((number, {name: decoder.affine(piece.get_aff(k)) for k, name in enumerate(further)}))
            except ValueError as problem:
                raise Unstated(f"a number is too large: {problem}") from problem
        left = coalesced(left.subtract(relation.domain()))
    return found


def _relation(space: NamedSpace, names: Sequence[str], points: isl.Set) -> tuple[isl.Map, list[str]]:
    """A set over `names` as the relation from the coordinates of `space` to the further ones, with their names."""
    relation = isl.Map.from_range(points)
    remaining = list(names)
    for position, name in enumerate(space.dims):
        place = remaining.index(name)
        relation = relation.move_dims(isl.dim_type.in_, position, isl.dim_type.out, place, 1)
        del remaining[place]
    return relation, remaining


_ENGINE = "isl"
_MOST_PIECES = 24
_OPERATIONS = 500_000
Stamp = Sequence[Expr]


def evidence_of(search: LastWrite) -> list[Evidence]:
    """The claims behind a finished search. Raises Unstated for too many cases or numbers that are too large."""
    with _stating(search.reader.space.ctx):
        return list(_claims(search))


@contextmanager
def _stating(ctx: isl.Context) -> Iterator[None]:
    try:
        with limited(_OPERATIONS, ctx):
            yield
    except BudgetExceeded as problem:
        raise Unstated(str(problem)) from problem
    except ValueError as problem:
        raise Unstated(f"a number is too large: {problem}") from problem


def _claims(search: LastWrite) -> Iterator[Evidence]:
    reader = search.reader
    here = _variables(reader.space, "")
    cells = [Var(f"cell.{axis}") for axis in range(search.read.dim(isl.dim_type.out))]
    reads = _accesses(search.read, reader.space, here, cells)
    time = _stamp(reader, here)
    writers = [
        _Writer(timestamp, access, number, cells)
        for number, (timestamp, access) in enumerate(zip(search.writers, search.writes, strict=True))
    ]
    pieces = [
        (writers[number], domain, source)
        for number, found in search.found
        for domain, source in _pieces(found, reader.space, here)
    ]
    if len(pieces) * max(1, len(writers)) > _MOST_PIECES * 4 or len(pieces) > _MOST_PIECES:
        raise Unstated(f"the sources take {len(pieces)} cases to tell")
    initial = Decoder(reader.space, here).condition(search.todo)
    told = logical_or(initial, *(domain for _, domain, _ in pieces))
    wrong: list[tuple[Expr, ...]] = [(reads, Not(told))]
    for writer, domain, source in pieces:
        right = logical_and(writer.at(source), _before(writer.time_at(source), time))
        wrong.append((reads, domain, Not(right)))
    yield _none(wrong)
    between: list[tuple[Expr, ...]] = []
    for other in writers:
        earlier = _before(other.time, time)
        between.append((reads, initial, other.writes, earlier))
        for writer, domain, source in pieces:
            between.append((reads, domain, other.writes, earlier, _before(writer.time_at(source), other.time)))
    if between:
        yield _none(between)


def _none(either: Sequence[tuple[Expr, ...]]) -> NoInstance:
    return NoInstance(Setting(), IterationDomain(), tuple(either), _ENGINE)


class _Writer:
    """One writer over variables of its own; `writes` is the condition that its point writes the cell."""

    def __init__(self, timestamp: Timestamp, access: isl.Map, number: int, cells: Sequence[Expr]) -> None:
        self.names = _variables(timestamp.space, f".{number}")
        self._order = [self.names[name] for name in timestamp.space.dims]
        self.writes = _accesses(access, timestamp.space, self.names, cells)
        self.time = _stamp(timestamp, self.names)

    def at(self, source: Sequence[Expr]) -> Expr:
        """That the point `source` writes the cell."""
        found = substitute(self.writes, self._values(source))
        assert isinstance(found, Expr)
        return found

    def time_at(self, source: Sequence[Expr]) -> Stamp:
        """When the point `source` happens."""
        return [substitute(part, self._values(source)) for part in self.time]

    def _values(self, source: Sequence[Expr]) -> dict[Var, Expr]:
        return {v: value for v, value in zip(self._order, source, strict=True) if isinstance(v, Var)}


def _variables(space: NamedSpace, mark: str) -> dict[str, Expr]:
    return {name: Var(f"{name}{mark}") for name in space.dims}


def _accesses(access: isl.Map, space: NamedSpace, names: Mapping[str, Expr], cells: Sequence[Expr]) -> Expr:
    """That a point and a cell are related."""
    inner = [f"cell {axis}" for axis in range(len(cells))]
    wrapped = NamedSpace(space.ctx, (*space.dims, *inner), space.params)
    variables = {**names, **dict(zip(inner, cells, strict=True))}
    flat = access.wrap().flatten().reset_tuple_id()
    return Decoder(wrapped, variables).condition(flat)


def _pieces(found: isl.Map, space: NamedSpace, names: Mapping[str, Expr]) -> Iterator[tuple[Expr, list[Expr]]]:
    decoder = Decoder(space, dict(names))
    for domain, piece in pieces_of(isl.PwMultiAff.from_map(found)):
        yield decoder.condition(domain), [decoder.affine(piece.get_aff(k)) for k in range(piece.dim(isl.dim_type.out))]


def _stamp(timestamp: Timestamp, names: Mapping[str, Expr]) -> Stamp:
    return [const(part) if isinstance(part, int) else names[part.var.name] for part in timestamp.time]


def _before(first: Stamp, second: Stamp) -> Expr:
    """That one time is before another, lexicographically."""
    cases: list[Expr] = []
    same: list[Expr] = []
    depth = min(len(first), len(second))  # one may be nested deeper than the other
    for a, b in zip(first[:depth], second[:depth], strict=True):
        if a == b:
            continue
        cases.append(logical_and(*same, a < b))
        same.append(equal(a, b))
    return logical_or(*cases)


def note_agreement(
    gathered: Gathered, what: str, found: Relation, carry: Relation, wanted: Relation, points: Points
) -> None:
    """Gather that `carry` takes what `found` leads to from each of `points` to what `wanted` leads to."""
    if gathered.is_recording and not points.is_empty():
        gathered.record(Several(what, partial(_evidence_of, _exceptions, found, carry, wanted, points)))


def note_contributions(
    gathered: Gathered, what: str, found: Relation, carry: Relation, wanted: Relation, points: Points
) -> None:
    """Gather that `carry` takes all that `found` leads to from each of `points` to all that `wanted` leads to."""
    if gathered.is_recording and not points.is_empty():
        gathered.record(Several(what, partial(_evidence_of, _missing, found, carry, wanted, points)))


def note_function(
    gathered: Gathered, what: str, link: isl.Map, dims: Sequence[Var], outputs: Sequence[Expr], points: Points
) -> None:
    """Gather that a relation leads from each of `points` to the values of `outputs` over `dims`."""
    if gathered.is_recording and not points.is_empty():
        gathered.record(Several(what, partial(_evidence_of_function, link, dims, outputs, points)))


_Exceptions = Callable[[Relation, Relation, Relation, Points], list[tuple[Expr, ...]]]


def _evidence_of(
    exceptions: _Exceptions, found: Relation, carry: Relation, wanted: Relation, points: Points
) -> list[Evidence]:
    with _stating(points.get_ctx()):
        # If both are empty there is no question.
        either = exceptions(found, carry, wanted, points)
        return [_none(either)] if either else []


def _evidence_of_function(
    link: isl.Map, dims: Sequence[Var], outputs: Sequence[Expr], points: Points
) -> list[Evidence]:
    with _stating(points.get_ctx()):
        here, there = _names("p", len(dims)), _names("x", len(outputs))
        inside, leads = _condition_on(points, here), _condition_on(link.wrap().flatten(), [*here, *there])
        values = dict(zip(dims, here, strict=True))
        same = logical_and(*(equal(v, substitute(output, values)) for v, output in zip(there, outputs, strict=True)))
        return [_none([(inside, Not(_condition_on(link.domain(), here))), (inside, leads, Not(same))])]


def _exceptions(found: Relation, carry: Relation, wanted: Relation, points: Points) -> list[tuple[Expr, ...]]:
    """The counterexamples of a claim: a point without a target, or two sources that do not correspond."""
    here = _names("p", points.dim(isl.dim_type.set))
    inside = _condition_on(points, here)
    mine, theirs = _from(found, points), _from(wanted, points)
    either: list[tuple[Expr, ...]] = []
    for each in (mine, theirs):
        either.append((inside, Not(logical_or(FALSE, *(_condition_on(relation.domain(), here) for relation in each)))))
    for first in mine:
        ours = _names("x", first.dim(isl.dim_type.out))
        for second in theirs:
            others = _names("z", second.dim(isl.dim_type.out))
            pairs = carry.extract_map(_between(first.range().get_space(), second.range().get_space()))
            carried = _condition_on(pairs.wrap().flatten(), [*ours, *others]) if not pairs.is_empty() else FALSE
            leads = [
                _condition_on(relation.wrap().flatten(), [*here, *names])
                for relation, names in ((first, ours), (second, others))
            ]
            either.append((inside, *leads, Not(carried)))
    return either


def _missing(found: Relation, carry: Relation, wanted: Relation, points: Points) -> list[tuple[Expr, ...]]:
    """The same for two images: something carried to nothing that is wanted, or wanted and not carried to."""
    here = _names("p", points.dim(isl.dim_type.set))
    inside = _condition_on(points, here)
    either: list[tuple[Expr, ...]] = []
    for relation, other, way in ((found, wanted, carry), (wanted, found, carry.reverse())):
        for first in _from(relation, points):
            ours = _names("x", first.dim(isl.dim_type.out))
            leads = _condition_on(first.wrap().flatten(), [*here, *ours])
            ways = _from(way, first.range())
            either.append(
                (inside, leads, Not(logical_or(FALSE, *(_condition_on(each.domain(), ours) for each in ways))))
            )
            for each in ways:
                others = _names("z", each.dim(isl.dim_type.out))
                there = other.extract_map(_between(points.get_space(), each.range().get_space()))
                stated = _condition_on(there.wrap().flatten(), [*here, *others]) if not there.is_empty() else FALSE
                either.append((inside, leads, _condition_on(each.wrap().flatten(), [*ours, *others]), Not(stated)))
    return either


def _from(relation: Relation, points: Points) -> list[isl.Map]:
    inside = relation.intersect_domain(isl.UnionSet.from_set(points))
    return sorted((coalesced(each) for each in maps_of(inside)), key=str)


def _between(first: isl.Space, second: isl.Space) -> isl.Space:
    return first.map_from_domain_and_range(second)


def _names(letter: str, count: int) -> list[Var]:
    return [Var(f"{letter}.{axis}") for axis in range(count)]


def _condition_on(points: isl.Set, variables: Sequence[Var]) -> Expr:
    """A set as a condition over the variables, one for each dim. Raises Unstated where it takes too many cases."""
    if points.n_basic_set() > _MOST_PIECES:
        raise Unstated(f"the sources take {points.n_basic_set()} cases to tell")
    params = [points.get_dim_name(isl.dim_type.param, k) or "" for k in range(points.dim(isl.dim_type.param))]
    names = [f"dim {axis}" for axis in range(len(variables))]
    space = NamedSpace(points.get_ctx(), names, params)
    return Decoder(space, dict(zip(names, variables, strict=True))).condition(
        points.reset_tuple_id() if points.has_tuple_id() else points
    )
