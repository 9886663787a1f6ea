"""What is known of the value that a read finds: from assumptions about it, from the stores that wrote it, and from
invariants of a buffer's contents. A fact serves a read only where its origin is that read's last writer. Part of the
trust base.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, replace

from layoutproof.ir.expr import Compare, Expr, Logical, Not, Var
from layoutproof.ir.intrinsics import OpaqueCall, Undef
from layoutproof.ir.operators import CompareOp, LogicalOp
from layoutproof.ir.visit import free_variables, holds_any, substitute, walk
from layoutproof.verify.flow.computed import Computed
from layoutproof.verify.flow.models import ProgramModel, RewriteModel
from layoutproof.verify.flow.stored_values import Leaves, decided
from layoutproof.verify.isl.dataflow import Dataflow
from layoutproof.verify.isl.encode import NotQuasiAffine
from layoutproof.verify.isl.instance_sets import (
    Points,
    Region,
    Relation,
    Sources,
    covers,
    joined,
    links_of,
    only,
    part_of,
    tuples_of,
)
from layoutproof.verify.isl.operations import coalesced
from layoutproof.verify.program.instances import conjuncts, is_index_like
from layoutproof.verify.program.statement import AssumedFact, Read, Statement, Statements
from layoutproof.verify.values.fast_math import IEEE
from layoutproof.verify.values.prover import StoredValue, ValueProver, candidates
from layoutproof.verify.values.question import Given, Holds, Identical, Property, ValueAnswer, placeholder, together
from layoutproof.verify.verdict.verdict import Status

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

    `loose`: stores that may have changed the sign of a zero are taken out of the flow, so what comes of reading memory
    is not known that exactly. `undefined` are the values that assumptions say are arbitrary; `whole` the assumptions of
    which these are all.
    """

    rewrite_model: RewriteModel
    flow: Dataflow
    statements: Statements
    tag: str
    facts: list[Fact] = field(default_factory=list)
    undefined: list[Fact] = field(default_factory=list)
    whole: set[int] = field(default_factory=set)
    loose: bool = False

    @staticmethod
    def of(rewrite_model: RewriteModel, flow: Dataflow, statements: Statements, tag: str) -> Knowledge:
        """All facts that the program's assumptions state."""
        found = Knowledge(rewrite_model, flow, statements, tag)
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
        """What is known of the values at the places to which a relation leads from the tuple `name` on a region."""
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
        return self.evaluated(statement, self.rewrite_model.of_points(statement, image), statement.value, depth)

    def evaluated(self, statement: Statement, region: Region, value: Expr, depth: int = 0) -> Iterator[Known]:
        """What a part of a statement's value is on a region, part by part."""
        values = frozenset(read.var for read in statement.reads)
        for part, (term,) in decided(region, values, value):
            yield from self._evaluated(statement, part, Leaves(part, values).abstract(term), depth)

    def _evaluated(self, statement: Statement, region: Region, term: Expr, depth: int) -> Iterator[Known]:
        if is_closed(term):
            yield Known(region, term)
            return
        used = set(free_variables(term))
        reads = [read for read in statement.reads if read.var in used]
        inexact = self.loose and any(read.var.dtype.is_float for read in reads)
        if inexact or depth >= _DEPTH or len(reads) != len(used) or holds_any(term, Undef, OpaqueCall):
            yield Known(region)
            return
        # One unknown load is enough: unwritten memory first, since its sources are at hand.
        parts: list[tuple[Region, dict[Var, Expr] | None]] = [(region, {})]
        for read in sorted(reads, key=lambda read: bool(self.statements.writers(read.data))):
            refined: list[tuple[Region, dict[Var, Expr] | None]] = []
            for part, constants in parts:
                if constants is None:
                    refined.append((part, None))
                    continue
                for known in self.of_read(statement, read, part, depth + 1):
                    refined.append(
                        (known.region, {**constants, read.var: known.value} if known.value is not None else None)
                    )
            parts = refined
        for part, constants in parts:
            closed = substitute(term, constants) if constants is not None else term
            yield Known(part, closed if is_closed(closed) else None)

    def together(
        self, statement: Statement, reads: Sequence[Read], region: Region, depth: int = 0
    ) -> Iterator[tuple[Region, list[Known]]]:
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
        """Add what one assumption states: conjuncts about one value that no condition on indices excuses."""
        if assumption.domain.depends_on_data():
            return
        said = [self._stated(number, assumption, guard.as_expr) for guard in conjuncts(assumption.condition)]
        for fact in said:
            if fact is not None:
                arbitrary = isinstance(fact.property, Identical) and is_undefined(fact.property.value)
                (self.undefined if arbitrary else self.facts).append(fact)
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
        region = self.rewrite_model.of_assumption(assumption, flow, name)
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
                # In an assumption, `==` between a load and a value is value identity; `== undef` says that any value
                # will do.
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
    return not free_variables(expr) and not holds_any(expr, Undef, OpaqueCall)


@dataclass(slots=True)
class Invariants:
    """The invariants of what one program's memories hold in `cells`; each is proved once."""

    program_model: ProgramModel
    knowledge: Knowledge
    computed: Computed
    values: ValueProver
    cells: Sources
    _proved: dict[tuple[Var, Property], ValueAnswer] = field(default_factory=dict)
    _stores: dict[Var, list[_Store]] = field(default_factory=dict)

    def candidates(self, data: Var) -> tuple[Property, ...]:
        """Properties worth trying for the cells of a memory, from the constants that they start with."""
        initial = dict.fromkeys(store.term for store in self._stores_of(data) if is_closed(store.term))
        return candidates(self.program_model.statements.dtypes[data], tuple(initial))

    def prove(self, statement: Statement, read: Read, region: Region, wanted: Property) -> ValueAnswer:
        """Whether the values that a read of `cells` finds on a region have a property, as all that are stored do."""
        if not self._is_written_before(statement, read, region):
            return ValueAnswer(Status.UNKNOWN, reason=f"{read.access.buffer.name} may be read before it is written")
        return self._known(read.data, wanted)

    def together(self, statement: Statement, read: Read, region: Region) -> dict[Property, ValueAnswer]:
        """All candidates that hold of what a read finds on a region: each proved alone, or with the help of those that
        are. An answer has what its helpers rest on.
        """
        if not self._is_written_before(statement, read, region):
            return {}
        candidates = self.candidates(read.data)
        alone = {
            each: answer for each in candidates if (answer := self._known(read.data, each)).status is Status.PROVED
        }
        helped = {each: self._kept(read.data, each, tuple(alone)) for each in candidates if alone and each not in alone}
        return alone | {
            each: together((answer, *alone.values())) for each, answer in helped.items() if answer.is_proved
        }

    def _known(self, data: Var, wanted: Property) -> ValueAnswer:
        key = (data, wanted)
        if key not in self._proved:
            self._proved[key] = self._kept(data, wanted)
        return self._proved[key]

    def _is_written_before(self, statement: Statement, read: Read, region: Region) -> bool:
        """Whether a read of a parameter never finds its initial value. (Temporaries: see uninitialised reads.)"""
        if read.data in self.program_model.statements.program.temporaries:
            return True
        if read.anywhere:
            return False
        name = self.program_model.name(statement)
        flow = self.knowledge.flow.sources(statement, read).intersect_domain(only(region.named(name)))
        return all(origin != f"{self.program_model.tag}in_{read.data.name}" for origin, _ in tuples_of(flow.range()))

    def _kept(self, data: Var, wanted: Property, helpers: tuple[Property, ...] = ()) -> ValueAnswer:
        """Whether every write keeps a property, where `helpers` are invariants already."""
        writes: list[StoredValue] = []
        for store in self._stores_of(data):
            # Most stores keep what they keep whatever else is known of what they read; finding that out takes longest.
            plain = _helped(store.plain(), helpers)
            if self.values.prove_invariant(wanted, (plain,), IEEE).status is Status.PROVED:
                writes.append(plain)
            else:
                writes += [_helped(part, helpers) for part in store.parts()]
        return self.values.prove_invariant(wanted, tuple(writes))

    def _write(
        self, data: Var, statement: Statement, found: Sequence[tuple[Read, Known]], region: Region, term: Expr
    ) -> StoredValue:
        """What a statement stores on a region, with what is known of what it reads."""
        constants = {read.var: known.value for read, known in found if known.value is not None}
        given = [Given(read.var, each) for read, known in found for each in known.properties]
        free = [read for read, known in found if known.value is None]
        own = frozenset(
            read.var
            for read in free
            if read.data == data
            and self._stays_inside(statement, read, region)
            and self._is_written_before(statement, read, region)
        )
        trusted = frozenset(read.var for read in free if self.computed.is_computed(statement, read, region))
        return StoredValue(substitute(term, constants), own, tuple(given), trusted)

    def _stays_inside(self, statement: Statement, read: Read, region: Region) -> bool:
        """Whether a read looks at `cells` only."""
        if read.anywhere:
            return False
        access = Relation.from_map(self.knowledge.flow.access(read, statement))
        return bool(
            access.intersect_domain(only(region.named(self.program_model.name(statement))))
            .range()
            .is_subset(self.cells)
        )

    def _stores_of(self, data: Var) -> list[_Store]:
        if data not in self._stores:
            found = []
            for statement in self.program_model.statements.writers(data):
                values = frozenset(read.var for read in statement.reads)
                # Stores that were found to change nothing, and are deleted, keep whatever holds.
                flow = self.knowledge.flow
                inside = Relation.from_map(flow.access(statement)).intersect_range(self.cells).domain()
                whole = self.program_model.rewrite_model.region(flow, statement)
                region = whole.within(part_of(inside, self.program_model.name(statement), whole.points))
                for part, (term,) in decided(region, values, statement.value):
                    found.append(_Store(self, data, statement, part, Leaves(part, values).abstract(term)))
            self._stores[data] = found
        return self._stores[data]

    def describe(self, store: _Store, *, closely: bool) -> list[StoredValue]:
        """What a store writes: `closely` in parts with one fact per read, otherwise as one, with nothing known."""
        used = set(free_variables(store.term))
        reads = [read for read in store.statement.reads if read.var in used]
        parts = list(self.knowledge.together(store.statement, reads, store.region)) if closely else []
        if not covers((part for part, _ in parts), store.region):
            parts = [(store.region, [Known(store.region)] * len(reads))]
        return [
            self._write(store.data, store.statement, list(zip(reads, known, strict=True)), part, store.term)
            for part, known in parts
        ]


@dataclass(slots=True)
class _Store:
    """What a statement stores on a region; independent of the property asked, so found once."""

    owner: Invariants
    data: Var
    statement: Statement
    region: Region
    term: Expr
    _plain: StoredValue | None = None
    _parts: list[StoredValue] | None = None

    def plain(self) -> StoredValue:
        """With nothing known of what is read."""
        if self._plain is None:
            (self._plain,) = self.owner.describe(self, closely=False)
        return self._plain

    def parts(self) -> list[StoredValue]:
        """With what is known of what is read, part by part."""
        if self._parts is None:
            self._parts = self.owner.describe(self, closely=True)
        return self._parts


def _helped(value: StoredValue, helpers: Sequence[Property]) -> StoredValue:
    """A value that is stored, where what is read of the memory's own cells has further invariants."""
    own = sorted(value.own, key=lambda v: v.name)
    return replace(value, given=(*value.given, *(Given(variable, each) for variable in own for each in helpers)))
