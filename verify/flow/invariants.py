"""Invariants of a buffer's contents in one program, found from templates and proved when one is asked for.

An invariant holds of every one of some cells from its first write on: every value that is stored there has it, extra instances
included, given that the values read from those cells have it. A read that may find an initial value of a parameter is not helped by it.
Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.subst import substitute
from layoutproof.ir.visit import free_variables
from layoutproof.verify.flow.half import Half
from layoutproof.verify.flow.knowledge import Knowledge, Known, is_closed
from layoutproof.verify.flow.origins import Computed
from layoutproof.verify.flow.terms import Leaves, decided
from layoutproof.verify.isl.pairing import Region, Relation, Sources, only, part_of, tuples_of
from layoutproof.verify.statements import Read, Statement
from layoutproof.verify.values.answer import ValueAnswer, together
from layoutproof.verify.values.invariants import StoredValue, candidates
from layoutproof.verify.values.licences import IEEE
from layoutproof.verify.values.properties import Given, Property
from layoutproof.verify.values.prove import ValueProver
from layoutproof.verify.verdict import Status


@dataclass(slots=True)
class Invariants:
    """The invariants of what one program's memories hold in `cells`; each is proved once."""

    half: Half
    knowledge: Knowledge
    computed: Computed
    values: ValueProver
    cells: Sources
    _proved: dict[tuple[Var, Property], ValueAnswer] = field(default_factory=dict)
    _stores: dict[Var, list[_Store]] = field(default_factory=dict)

    def candidates(self, data: Var) -> tuple[Property, ...]:
        """Properties worth trying for the cells of a memory, from the constants that they start with."""
        initial = dict.fromkeys(store.term for store in self._stores_of(data) if is_closed(store.term))
        return candidates(self.half.statements.dtypes[data], tuple(initial))

    def prove(self, statement: Statement, read: Read, region: Region, wanted: Property) -> ValueAnswer:
        """Whether what a read of `cells` finds on a region has a property, because all that is ever stored there has."""
        if self._may_be_initial(statement, read, region):
            return ValueAnswer(Status.UNKNOWN, reason=f"{read.access.buffer.name} may be read before it is written")
        return self._known(read.data, wanted)

    def together(self, statement: Statement, read: Read, region: Region) -> dict[Property, ValueAnswer]:
        """All candidates that hold of what a read finds on a region: each proved alone, or with the help of those that are. An answer
        has what its helpers rest on.
        """
        if self._may_be_initial(statement, read, region):
            return {}
        candidates = self.candidates(read.data)
        alone = {each: answer for each in candidates if (answer := self._known(read.data, each)).status is Status.PROVED}
        helped = {each: self._kept(read.data, each, tuple(alone)) for each in candidates if alone and each not in alone}
        return {
            **alone,
            **{each: together((answer, *alone.values())) for each, answer in helped.items() if answer.status is Status.PROVED},
        }

    def _known(self, data: Var, wanted: Property) -> ValueAnswer:
        key = (data, wanted)
        if key not in self._proved:
            self._proved[key] = self._kept(data, wanted)
        return self._proved[key]

    def _may_be_initial(self, statement: Statement, read: Read, region: Region) -> bool:
        """Whether a read of a parameter may find what the caller left there. (That temporaries are written first is proved apart.)"""
        if read.data in self.half.statements.program.temporaries:
            return False
        if read.anywhere:
            return True
        name = self.half.name(statement)
        flow = self.knowledge.flow.sources(statement, read).intersect_domain(only(region.named(name)))
        return any(origin == f"{self.half.tag}in_{read.data.name}" for origin, _ in tuples_of(flow.range()))

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

    def _write(self, data: Var, statement: Statement, found: Sequence[tuple[Read, Known]], region: Region, term: Expr) -> StoredValue:
        """What a statement stores on a region, with what is known of what it reads."""
        constants = {read.var: known.value for read, known in found if known.value is not None}
        given = [Given(read.var, each) for read, known in found for each in known.properties]
        free = [read for read, known in found if known.value is None]
        own = frozenset(
            read.var
            for read in free
            if read.data == data and self._stays_inside(statement, read, region) and not self._may_be_initial(statement, read, region)
        )
        trusted = frozenset(read.var for read in free if self.computed.is_computed(statement, read, region))
        return StoredValue(substitute(term, constants), own, tuple(given), trusted)

    def _stays_inside(self, statement: Statement, read: Read, region: Region) -> bool:
        """Whether a read looks at `cells` only."""
        if read.anywhere:
            return False
        access = Relation.from_map(self.knowledge.flow.access(read, statement))
        return bool(access.intersect_domain(only(region.named(self.half.name(statement)))).range().is_subset(self.cells))

    def _stores_of(self, data: Var) -> list[_Store]:
        if data not in self._stores:
            found = []
            for statement in self.half.statements.writers(data):
                values = frozenset(read.var for read in statement.reads)
                # Stores that were found to change nothing, and are deleted, keep whatever holds.
                flow = self.knowledge.flow
                inside = Relation.from_map(flow.access(statement)).intersect_range(self.cells).domain()
                whole = self.half.world.region(flow, statement)
                region = whole.within(part_of(inside, self.half.name(statement), whole.points))
                for part, (term,) in decided(region, values, statement.value):
                    found.append(_Store(self, data, statement, part, Leaves(part, values).abstract(term)))
            self._stores[data] = found
        return self._stores[data]

    def describe(self, store: _Store, *, closely: bool) -> list[StoredValue]:
        """What a store writes: `closely` in parts on which what its reads find is one thing, otherwise as one, with nothing known."""
        used = set(free_variables(store.term))
        reads = [read for read in store.statement.reads if read.var in used]
        parts: Iterable[tuple[Region, list[Known]]]
        if closely:
            parts = self.knowledge.together(store.statement, reads, store.region)
        else:
            parts = [(store.region, [Known(store.region)] * len(reads))]
        return [self._write(store.data, store.statement, list(zip(reads, known, strict=True)), part, store.term) for part, known in parts]


@dataclass(slots=True)
class _Store:
    """What a statement stores on a region. What is known of it depends on no property, and is found once for all that are asked."""

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
