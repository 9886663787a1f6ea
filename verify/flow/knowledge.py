"""What is known of the value that a read finds: from the assumptions about it, and from the stores that wrote it.

A fact serves a read only where its origin is that read's last writer: an assumption speaks of the value that its own load finds, so
of the store, or the initial cell, which that load has as its source. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, replace

from layoutproof.ir.expr import Compare, CompareOp, Expr, Logical, LogicalOp, Not, Var
from layoutproof.ir.intrinsics import OpaqueCall, Undef
from layoutproof.ir.subst import substitute
from layoutproof.ir.visit import free_variables, walk
from layoutproof.verify.flow.terms import Leaves, decided
from layoutproof.verify.flow.world import World
from layoutproof.verify.instances import conjuncts, is_index_like
from layoutproof.verify.isl.coalesce import coalesced
from layoutproof.verify.isl.dataflow import Dataflow
from layoutproof.verify.isl.encode import NotQuasiAffine
from layoutproof.verify.isl.pairing import Points, Region, Relation, Sources, joined, links_of, only, part_of
from layoutproof.verify.statements import AssumedFact, Read, Statement, Statements
from layoutproof.verify.values.properties import Holds, Identical, Property, placeholder

_DEPTH = 3


@dataclass(frozen=True, slots=True)
class Fact:
    """A property of every value whose origin is in `sources`. `number` is that of the assumption that states it."""

    sources: Sources
    property: Property
    number: int


@dataclass(frozen=True, slots=True)
class Known:
    """What a read finds on a region: a closed expression, if it is one, and further properties."""

    region: Region
    value: Expr | None = None
    properties: tuple[Property, ...] = ()


@dataclass(slots=True)
class Knowledge:
    """What one program says of its own values. `tag` is that of its tuple names.

    `loose`: stores that may have changed the sign of a zero are taken out of the flow, so what comes of reading memory is not known that
    exactly. `undefined` are the values that assumptions say are arbitrary; `whole` the assumptions of which these are all.
    """

    world: World
    flow: Dataflow
    statements: Statements
    tag: str
    facts: list[Fact] = field(default_factory=list)
    undefined: list[Fact] = field(default_factory=list)
    whole: set[int] = field(default_factory=set)
    loose: bool = False

    @staticmethod
    def of(world: World, flow: Dataflow, statements: Statements, tag: str) -> Knowledge:
        """All facts that the program's assumptions state."""
        found = Knowledge(world, flow, statements, tag)
        for number, assumption in enumerate(statements.assumptions):
            found._state(number, assumption)
        return found

    def with_flow(self, flow: Dataflow) -> Knowledge:
        """The same facts with stores taken out that change nothing."""
        return replace(self, flow=flow)

    def loosened(self) -> Knowledge:
        """The same where values may differ in the sign of a zero from those of the program as it stands."""
        return replace(self, loose=True)

    def of_read(self, statement: Statement, read: Read, region: Region, depth: int = 0) -> list[Known]:
        """What a read of a statement finds on a region, part by part."""
        if read.anywhere:
            return [Known(region)]
        name = f"{self.tag}{statement.number}"
        flow = self.flow.sources(statement, read).intersect_domain(only(region.named(name)))
        return self._by_facts(self._by_origin(flow, name, region, depth), flow, name)

    def of_flow(self, flow: Relation, name: str, region: Region) -> list[Known]:
        """What is known of the values at the places where a relation leads from the points of a region, whose tuple is `name`."""
        return self._by_facts(self._by_origin(flow, name, region, 0), flow, name)

    # Origins

    def _by_origin(self, flow: Relation, name: str, region: Region, depth: int) -> list[Known]:
        found: list[Known] = []
        rest = region
        for origin, link in links_of(flow, name):
            statement = self._statement(origin)
            if statement is None:
                continue
            rest = rest.outside(link.domain())
            for known in self._stored(statement, link.range(), depth):
                where = region.within(link.intersect_range(known.region.named(origin)).domain())
                if not where.is_empty:
                    found.append(Known(where, known.value))
        return found if rest.is_empty else [*found, Known(rest)]

    def _statement(self, origin: str) -> Statement | None:
        return next((s for s in self.statements.statements if f"{self.tag}{s.number}" == origin), None)

    def _stored(self, statement: Statement, image: Points, depth: int) -> Iterator[Known]:
        """What a statement stores on a set of its instances."""
        values = frozenset(read.var for read in statement.reads)
        region = self.world.of_points(statement, image)
        for part, (term,) in decided(region, values, statement.value):
            yield from self._evaluated(statement, part, Leaves(part, values).abstract(term), depth)

    def _evaluated(self, statement: Statement, region: Region, term: Expr, depth: int) -> Iterator[Known]:
        if is_closed(term):
            yield Known(region, term)
            return
        used = set(free_variables(term))
        reads = [read for read in statement.reads if read.var in used]
        inexact = self.loose and any(read.var.dtype.is_float for read in reads)
        if inexact or depth >= _DEPTH or len(reads) != len(used) or any(isinstance(node, Undef | OpaqueCall) for node in walk(term)):
            yield Known(region)
            return
        # One load of which nothing is known is enough: what nobody writes is asked first, since its sources are at hand.
        parts: list[tuple[Region, dict[Var, Expr] | None]] = [(region, {})]
        for read in sorted(reads, key=lambda read: bool(self.statements.writers(read.data))):
            refined: list[tuple[Region, dict[Var, Expr] | None]] = []
            for part, constants in parts:
                if constants is None:
                    refined.append((part, None))
                    continue
                for known in self.of_read(statement, read, part, depth + 1):
                    refined.append((known.region, {**constants, read.var: known.value} if known.value is not None else None))
            parts = refined
        for part, constants in parts:
            closed = substitute(term, constants) if constants is not None else term
            yield Known(part, closed if is_closed(closed) else None)

    def together(self, statement: Statement, reads: Sequence[Read], region: Region, depth: int = 0) -> Iterator[tuple[Region, list[Known]]]:
        """The parts of a region on which what is known of each read is one thing."""
        parts: list[tuple[Region, list[Known]]] = [(region, [])]
        for read in reads:
            refined = []
            for part, found in parts:
                for known in self.of_read(statement, read, part, depth):
                    refined.append((known.region, [*found, known]))
            parts = refined
        yield from parts

    # Assumptions

    def _by_facts(self, pieces: list[Known], flow: Relation, name: str) -> list[Known]:
        for fact in self.facts:
            told = flow.intersect_range(fact.sources).domain()
            refined = []
            for piece in pieces:
                inside = piece.region.within(part_of(told, name, piece.region.points))
                if inside.is_empty:
                    refined.append(piece)
                    continue
                refined.append(_with(replace(piece, region=inside), fact.property))
                outside = piece.region.outside(inside.points)
                if not outside.is_empty:
                    refined.append(replace(piece, region=outside))
            pieces = refined
        return _joined(pieces)

    def _state(self, number: int, assumption: AssumedFact) -> None:
        """Take in what one assumption states: conjuncts that speak of one value, where conditions on indices do not excuse it."""
        if assumption.scene.depends_on_data():
            return
        said = [self._stated(number, assumption, guard.as_expr) for guard in conjuncts(assumption.condition)]
        for fact in said:
            if fact is not None:
                (self.undefined if isinstance(fact.property, Identical) and is_undefined(fact.property.value) else self.facts).append(fact)
        if None not in said:
            self.whole.add(number)

    def _stated(self, number: int, assumption: AssumedFact, condition: Expr) -> Fact | None:
        """One conjunct as a fact; None where it speaks of anything but one value."""
        values = {read.var: read for read in assumption.reads}
        parts = list(disjuncts(condition))
        excuses = [part for part in parts if is_index_condition(part, values)]
        stated = _property([part for part in parts if part not in excuses], values)
        if stated is None or stated[0].anywhere:
            return None
        read, found = stated
        name = f"{self.tag}a{number}"
        flow = self.flow.assumed_sources(number, read)
        region = self.world.of_assumption(assumption, flow, name)
        try:
            for excuse in excuses:
                region = region.split(excuse)[1]
        except NotQuasiAffine:
            return None
        told = coalesced(flow.intersect_domain(only(region.named(name))).range())
        return Fact(told, found, number)


def _joined(pieces: Sequence[Known]) -> list[Known]:
    """Pieces of which the same is known as one, in the order of their first parts."""
    groups: dict[tuple[Expr | None, tuple[Property, ...]], list[Region]] = {}
    for piece in pieces:
        groups.setdefault((piece.value, piece.properties), []).append(piece.region)
    return [Known(joined(regions), value, properties) for (value, properties), regions in groups.items()]


def _with(known: Known, stated: Property) -> Known:
    if isinstance(stated, Identical) and known.value is None:
        return replace(known, value=stated.value)
    return replace(known, properties=(*known.properties, stated))


def disjuncts(condition: Expr) -> Iterator[Expr]:
    """The parts of which one must hold for the condition to hold."""
    for guard in conjuncts(condition, False):
        yield guard.condition if not guard.holds else Not(guard.condition)


def is_index_condition(expr: Expr, values: Container[Var]) -> bool:
    """Whether a truth value speaks of indices only."""
    if any(v in values for v in free_variables(expr)):
        return False
    return all(not isinstance(node, Expr) or node.dtype.is_bool or is_index_like(node) for node in walk(expr))


def _property(rest: Sequence[Expr], values: dict[Var, Read]) -> tuple[Read, Property] | None:
    variables = {v for part in rest for v in free_variables(part)}
    if len(variables) != 1 or not variables <= set(values):
        return None
    (variable,) = variables
    if len(rest) == 1:
        match rest[0]:
            case Compare(op=CompareOp.EQ, lhs=lhs, rhs=rhs) if variable in (lhs, rhs):
                other = rhs if lhs == variable else lhs
                # In an assumption, `==` between a load and a value is value identity; `== undef` says that any value will do.
                return (values[variable], Identical(other)) if is_closed(other) or is_undefined(other) else None
            case _:
                pass
    if any(isinstance(node, Undef | OpaqueCall) for part in rest for node in walk(part)):
        return None
    stand_in = placeholder(variable.dtype)
    said = [substitute(part, {variable: stand_in}) for part in rest]
    whole = said[0]
    for part in said[1:]:
        whole = Logical(LogicalOp.OR, whole, part)
    return values[variable], Holds(whole)


def is_undefined(expr: Expr) -> bool:
    """Whether an expression is an arbitrary value, and nothing else."""
    return isinstance(expr, Undef)


def is_closed(expr: Expr) -> bool:
    """Whether an expression is a constant: no variables, nothing arbitrary."""
    return not free_variables(expr) and not any(isinstance(node, Undef | OpaqueCall) for node in walk(expr))
