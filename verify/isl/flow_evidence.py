"""The answer of a search for last writes, said as claims that other solvers can confirm: what was found wrote the cell before the read,
nothing wrote it in between, and where nothing was found nothing wrote it before.

The points and cells of accesses are taken as integer sets have them; that the answer follows from them is what is claimed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from layoutproof.ir.expr import Expr, Not, Var, const, equal, logical_and, logical_or
from layoutproof.ir.subst import substitute
from layoutproof.verify.evidence import Evidence, NoInstance, Setting, Unsaid
from layoutproof.verify.instances import Scene
from layoutproof.verify.isl.decode import Decoder, pieces_of
from layoutproof.verify.isl.last_write import LastWrite
from layoutproof.verify.isl.library import isl
from layoutproof.verify.isl.moments import Moment
from layoutproof.verify.isl.space import BudgetExceeded, NamedSpace, limited

_ENGINE = "isl"
_MOST_PIECES = 24
_OPERATIONS = 500_000
Stamp = Sequence[Expr]


def evidence_of(search: LastWrite) -> list[Evidence]:
    """The claims behind a finished search. Raises Unsaid where they take too many cases, or numbers that are too large."""
    try:
        with limited(_OPERATIONS, search.reader.space.ctx):
            return list(_claims(search))
    except BudgetExceeded as problem:
        raise Unsaid(str(problem)) from problem
    except ValueError as problem:
        raise Unsaid(f"a number is too large: {problem}") from problem


def _claims(search: LastWrite) -> Iterator[Evidence]:
    reader = search.reader
    here = _variables(reader.space, "")
    cells = [Var(f"cell.{axis}") for axis in range(search.read.dim(isl.dim_type.out))]
    reads = _accesses(search.read, reader.space, here, cells)
    time = _stamp(reader, here)
    writers = [
        _Writer(moment, access, number, cells) for number, (moment, access) in enumerate(zip(search.writers, search.writes, strict=True))
    ]
    pieces = [(writers[number], domain, source) for number, found in search.found for domain, source in _pieces(found, reader.space, here)]
    if len(pieces) * max(1, len(writers)) > _MOST_PIECES * 4 or len(pieces) > _MOST_PIECES:
        raise Unsaid(f"the sources take {len(pieces)} cases to tell")
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
    return NoInstance(Setting(), Scene(), tuple(either), _ENGINE)


class _Writer:
    """One writer: `writes` says that its point writes the cell, over variables of its own."""

    def __init__(self, moment: Moment, access: isl.Map, number: int, cells: Sequence[Expr]) -> None:
        self.names = _variables(moment.space, f".{number}")
        self._order = [self.names[name] for name in moment.space.dims]
        self.writes = _accesses(access, moment.space, self.names, cells)
        self.time = _stamp(moment, self.names)

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


def _stamp(moment: Moment, names: Mapping[str, Expr]) -> Stamp:
    return [const(part) if isinstance(part, int) else names[part.var.name] for part in moment.time]


def _before(first: Stamp, second: Stamp) -> Expr:
    """That one time is before another, lexicographically."""
    cases: list[Expr] = []
    same: list[Expr] = []
    depth = min(len(first), len(second))  # one may stand deeper than the other
    for a, b in zip(first[:depth], second[:depth], strict=True):
        if a == b:
            continue
        cases.append(logical_and(*same, a < b))
        same.append(equal(a, b))
    return logical_or(*cases)
