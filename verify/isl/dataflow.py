"""Exact dataflow: the last writer of every value that a program reads, for every instance, or NotModelled.

Initial contents are cells of their own, the sources of reads without an earlier write. A memory that is never written
costs no isl call. Part of the trusted computing base.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias, TypeVar

from layoutproof.ir.expr import Var, const
from layoutproof.ir.stmt import ForKind
from layoutproof.verify.isl.instance_sets import Instances, Workspace
from layoutproof.verify.isl.isl_evidence import evidence_of
from layoutproof.verify.isl.last_writer import LastWrite, Time, Timestamp, preceding
from layoutproof.verify.isl.operations import coalesced
from layoutproof.verify.isl.space import isl
from layoutproof.verify.program.evidence import Several
from layoutproof.verify.program.instances import Dim, IterationDomain
from layoutproof.verify.program.statement import NotModelled, Read, Statement, Statements

T = TypeVar("T")

_END: Time = (1,)
Reduced: TypeAlias = "tuple[isl.UnionMap, isl.UnionMap]"


@dataclass(frozen=True, slots=True)
class Write:
    """One store when it happens; `cells` leads from the points of `timestamp` to the cells they write."""

    statement: Statement
    timestamp: Timestamp
    cells: isl.Map


@dataclass(slots=True)
class _Known:
    """Results about one version of a program."""

    domains: dict[int, isl.Set] = field(default_factory=dict)
    flows: dict[tuple[object, ...], isl.UnionMap] = field(default_factory=dict)
    reduced: dict[tuple[object, ...], Reduced] = field(default_factory=dict)
    writes: dict[Var, list[Write]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Carried:
    """A load of `source` in the value of another statement, whose instances `link` takes to those of `source`."""

    mark: object
    link: isl.UnionMap
    source: Statement
    read: Read


class Dataflow:
    """The exact flow of one program. All methods raise NotModelled or BudgetExceeded rather than approximate.

    Tuple names: `{tag}{number}` instances of a statement (dims in the statement's order), `{tag}in_{data}` cells before
    the program (also the cells of `access`), `{tag}out_{data}` cells after it, `{tag}a{k}` instances of assumption
    number k. The instances of an `anywhere` read have the dims of its iteration domain, under the same tuple name.

    A value that is put in the place of a load (`carried`) has loads of another statement. To `sources`, `reduced` and
    `access` these are loads of the statement in which they stand, with the sources they had when it was computed.
    """

    def __init__(self, workspace: Workspace, statements: Statements, tag: str) -> None:
        self.workspace, self.statements, self.tag = workspace, statements, tag
        self._by_number = {s.number: s for s in statements.statements}
        self._instances: dict[int, Instances] = {}
        self._accesses: dict[tuple[object, ...], isl.Map] = {}
        self._cells: dict[Var, isl.Set] = {}
        self._removed: dict[int, isl.Set] = {}
        self._fresh: frozenset[int] = frozenset()  # the statements with instances removed from the parent
        self._parent: Dataflow | None = None
        self._carried: dict[tuple[int, Var], _Carried] = {}
        self._mark = object()
        self._known = _Known()

    # Instances and cells

    def domain(self, statement: Statement) -> isl.Set:
        """The instances of a statement."""
        known = self._known.domains.get(statement.number)
        if known is None:
            with self.workspace.limited():
                known = self._all(statement).points.set_tuple_name(self._name(statement))
                gone = self._removed.get(statement.number)
                if gone is not None:
                    known = coalesced(known.subtract(gone))
            self._known.domains[statement.number] = known
        return known

    def cell_set(self, data: Var) -> isl.Set:
        """The box of a memory's cells, as `{tag}in_{data}`."""
        known = self._cells.get(data)
        if known is None:
            with self.workspace.limited():
                known = self.workspace.boxed(self._cell_dims(data)).points.set_tuple_name(self._cell_name(data))
            self._cells[data] = known
        return known

    def access(self, at: Statement | Read, statement: Statement | None = None) -> isl.Map:
        """Instance -> cell (`{tag}in_{data}`) that a statement writes, or that a read of `statement` reads."""
        with self.workspace.limited():
            if isinstance(at, Statement):
                return self._write(at).intersect_domain(self.domain(at))
            if statement is None:
                raise TypeError("the access of a read needs its statement")
            carried = self._carrying(statement, at)
            if carried is None:
                return self._read(statement, at)
            relation = carried.link.apply_range(isl.UnionMap.from_map(self.access(carried.read, carried.source)))
            return isl.Map.from_union_map(relation)

    # Sources

    def sources(self, statement: Statement, read: Read) -> isl.UnionMap:
        """Instance -> the last writer of what it reads, or Init cell: single valued, total where the read happens."""
        return self._once(self._known.flows, (statement.number, read.var), lambda: self._sources(statement, read))

    def assumed_sources(self, number: int, read: Read) -> isl.UnionMap:
        """The same for a read of assumption `number`; instances are `{tag}a{number}`."""
        return self._once(self._known.flows, ("assumed", number, read.var), lambda: self._assumed_sources(number, read))

    def final(self, data: Var) -> isl.UnionMap:
        """Fin cell (`{tag}out_{data}`) -> the instance that wrote last, or the Init cell."""
        return self._once(self._known.flows, ("final", data), lambda: self._final(data))

    def reduced(self, statement: Statement, read: Read, chain: frozenset[int]) -> Reduced:
        """Instance -> its last writer outside the chain, or Init cell; and -> the chain's writes after that."""
        key = (statement.number, read.var, chain)
        return self._once(self._known.reduced, key, lambda: self._reduced(statement, read, chain))

    def reduced_final(self, data: Var, chain: frozenset[int]) -> Reduced:
        """The same for every cell at the end."""
        key = ("final", data, chain)
        return self._once(self._known.reduced, key, lambda: self._flow_around(data, *self._end(data), chain))

    def _once(self, known: dict[tuple[object, ...], T], key: tuple[object, ...], compute: Callable[[], T]) -> T:
        found = known.get(key)
        if found is None:
            with self.workspace.limited():
                found = known[key] = compute()
        return found

    def carried(self, statement: Statement, link: isl.Map, source: Statement, read: Read) -> Var:
        """A new variable for what `read`, a load of `source`, finds at the instances of `source` to which `link` leads:
        in this flow, a load of `statement` with this variable finds just that.
        """
        var = Var(f"{read.var.name}~{len(self._carried)}", read.var.dtype)
        self._carried[statement.number, var] = _Carried(self._mark, isl.UnionMap.from_map(link), source, read)
        return var

    def is_carried(self, statement: Statement, read: Read) -> bool:
        """Whether a load in a statement's value was put there from another statement."""
        return (statement.number, read.var) in self._carried

    def loads(self, statement: Statement, read: Read) -> tuple[Timestamp, isl.Map]:
        """When a read happens, and from its points to the cells that it reads."""
        timestamp = self._when(statement, read)
        return timestamp, timestamp.accessing(_unnamed(self._read(statement, read)))

    def is_whole(self, data: Var) -> bool:
        """Whether no store to a memory was removed from the program."""
        return not any(self._by_number[number].data == data for number in self._removed)

    @property
    def removed(self) -> Mapping[int, isl.Set]:
        """The instances that were removed from the program, by statement number."""
        return self._removed

    def without(self, removed: Mapping[int, isl.Set]) -> Dataflow:
        """The same program without those instances (by statement number; with or without tuple names)."""
        other = Dataflow(self.workspace, self.statements, self.tag)
        other._instances, other._accesses, other._cells = self._instances, self._accesses, self._cells
        other._parent, other._carried = self, self._carried
        other._removed = dict(self._removed)
        with self.workspace.limited():
            for number, points in removed.items():
                named = points.set_tuple_name(f"{self.tag}{number}")
                gone = self._removed.get(number)
                other._removed[number] = named if gone is None else coalesced(gone.union(named))
        other._known.domains = {n: d for n, d in self._known.domains.items() if n not in removed}
        other._fresh = frozenset(removed)
        return other

    def _changed(self, data: Var) -> bool:
        """Whether stores to this memory were removed from the parent."""
        return any(self._by_number[number].data == data for number in self._fresh)

    def _carrying(self, statement: Statement, read: Read) -> _Carried | None:
        """The origin of a load in a statement's value that is of another statement; None for all others."""
        carried = self._carried.get((statement.number, read.var))
        if carried is not None and carried.mark is not self._mark:
            raise NotModelled(f"what {read.access.text} finds was asked of another flow", read.access.node)
        return carried

    # Relations

    def _name(self, statement: Statement) -> str:
        return f"{self.tag}{statement.number}"

    def _cell_name(self, data: Var) -> str:
        return f"{self.tag}in_{data.name}"

    def _cell_dims(self, data: Var) -> tuple[Dim, ...]:
        box, leading = self.statements.cells[data], self.statements.leading[data]
        rest = box[len(leading) :]
        names = [Var(f"{data.name}'{axis}", extent.dtype) for axis, extent in enumerate(rest)]
        return (*leading, *(Dim(v, const(0, v.dtype), e, ForKind.SERIAL) for v, e in zip(names, rest, strict=True)))

    def _all(self, statement: Statement) -> Instances:
        """All instances of a statement of the original program."""
        known = self._instances.get(statement.number)
        if known is None:
            known = self._instances[statement.number] = self.workspace.instances(statement.domain)
        return known

    def _reading(self, instances: Instances, domain: IterationDomain, read: Read) -> Instances:
        """The instances of an iteration domain in which a read happens."""
        more = [g for g in read.access.domain.guards if g not in domain.guards]
        extra = read.access.domain.dims[len(domain.dims) :]
        if extra:
            inner = self.workspace.boxed(read.access.domain.dims)
            outside = instances.points.add_dims(isl.dim_type.set, len(extra))
            instances = Instances(inner.space, inner.encoder, inner.points.intersect(outside))
        return self.workspace.restricted(instances, more)

    def _to_cells(self, instances: Instances, read: Read, name: str) -> isl.Map:
        relation = instances.map_to(read.coordinates)
        return relation.set_tuple_name(isl.dim_type.in_, name).set_tuple_name(
            isl.dim_type.out, self._cell_name(read.data)
        )

    def _write(self, statement: Statement) -> isl.Map:
        known = self._accesses.get((statement.number,))
        if known is None:
            relation = self._all(statement).map_to(statement.coordinates)
            relation = relation.set_tuple_name(isl.dim_type.in_, self._name(statement))
            known = self._accesses[(statement.number,)] = relation.set_tuple_name(
                isl.dim_type.out, self._cell_name(statement.data)
            )
        return known

    def _read(self, statement: Statement, read: Read) -> isl.Map:
        """The cells of a read, in the instances that are left."""
        key = (statement.number, read.var)
        known = self._accesses.get(key)
        if known is None:
            instances = self._reading(self._all(statement), statement.domain, read)
            known = self._accesses[key] = self._to_cells(instances, read, self._name(statement))
        if statement.number not in self._removed:
            return known
        domain = self.domain(statement)
        extra = len(read.access.domain.dims) - len(statement.dims)
        if extra:
            domain = domain.add_dims(isl.dim_type.set, extra).set_tuple_name(self._name(statement))
        return coalesced(known.intersect_domain(domain))

    # Times

    def _when(self, statement: Statement, read: Read) -> Timestamp:
        instances = self._reading(self._all(statement), statement.domain, read)
        return Timestamp(instances.space, (0, *read.access.domain.time), instances.points)

    def _end(self, data: Var) -> tuple[isl.Map, Timestamp]:
        """Every cell at the end."""
        instances = self.workspace.boxed(self._cell_dims(data))
        cells = isl.Map.identity(isl.Space.map_from_set(instances.space.space)).intersect_domain(instances.points)
        cells = cells.set_tuple_name(isl.dim_type.in_, f"{self.tag}out_{data.name}").set_tuple_name(
            isl.dim_type.out, self._cell_name(data)
        )
        return cells, Timestamp(instances.space, _END, instances.points)

    # Flow

    def _sources(self, statement: Statement, read: Read) -> isl.UnionMap:
        carried = self._carrying(statement, read)
        if carried is not None:
            return coalesced(carried.link.apply_range(self.sources(carried.source, carried.read)))
        if self._parent is not None and not self._changed(read.data):
            known = self._parent.sources(statement, read)
            if statement.number not in self._fresh:
                return known
            return coalesced(known.intersect_domain(isl.UnionSet.from_set(self._read(statement, read).domain())))
        sink = self._read(statement, read)
        if not self.statements.writers(read.data):
            return isl.UnionMap.from_map(sink)
        return self._flow(read.data, sink, self._when(statement, read))

    def _assumed_sources(self, number: int, read: Read) -> isl.UnionMap:
        if self._parent is not None and not self._changed(read.data):
            return self._parent.assumed_sources(number, read)
        fact = self.statements.assumptions[number]
        instances = self._reading(self.workspace.instances(fact.domain), fact.domain, read)
        time = Timestamp(instances.space, (0, *read.access.domain.time), instances.points)
        return self._flow(read.data, self._to_cells(instances, read, f"{self.tag}a{number}"), time)

    def _final(self, data: Var) -> isl.UnionMap:
        if self._parent is not None and not self._changed(data):
            return self._parent.final(data)
        return self._flow(data, *self._end(data))

    def _reduced(self, statement: Statement, read: Read, chain: frozenset[int]) -> Reduced:
        carried = self._carrying(statement, read)
        if carried is None:
            return self._flow_around(read.data, self._read(statement, read), self._when(statement, read), chain)
        owners, parts = self.reduced(carried.source, carried.read, chain)
        return coalesced(carried.link.apply_range(owners)), coalesced(carried.link.apply_range(parts))

    def _flow(self, data: Var, sink: isl.Map, reader: Timestamp) -> isl.UnionMap:
        """Where each instance of `sink` finds its cell written last: one instance or the Init cell."""
        return self._flow_around(data, sink, reader, frozenset())[0]

    def _flow_around(self, data: Var, sink: isl.Map, reader: Timestamp, chain: frozenset[int]) -> Reduced:
        """The last writer outside the chain, and the chain's writes after that."""
        nothing = isl.UnionMap.empty(sink.get_space().params())
        writes = self.writes(data)
        outside = [write for write in writes if write.statement.number not in chain]
        inside = [write for write in writes if write.statement.number in chain]
        if not writes:
            return isl.UnionMap.from_map(sink), nothing
        owners, parts = nothing, nothing
        search = LastWrite(
            reader, reader.accessing(_unnamed(sink)), [w.timestamp for w in outside], [w.cells for w in outside]
        )
        search.run()
        self.workspace.gathered.record(Several(f"where {data.name} was written last", partial(evidence_of, search)))
        for number, found in search.found:
            owners = owners.union(isl.UnionMap.from_map(self._between(sink, outside[number], found)))
        if not search.todo.is_empty():
            initial = search.read.intersect_domain(search.todo)
            owners = owners.union(isl.UnionMap.from_map(coalesced(_named(initial, _in(sink), self._cell_name(data)))))
        for write in inside:
            related = search.read.apply_range(write.cells.reverse())
            after = preceding(reader, write.timestamp, related)
            for number, found in search.found:
                owner = outside[number]
                pairs = owner.cells.apply_range(write.cells.reverse())
                hidden = found.apply_range(preceding(owner.timestamp, write.timestamp, pairs))
                after = coalesced(after.subtract(hidden))
            if not after.is_empty():
                parts = parts.union(isl.UnionMap.from_map(self._between(sink, write, after)))
        # A cheap check: a read without a source would never be compared.
        if not isl.UnionSet.from_set(sink.domain()).is_subset(owners.domain()) or not owners.is_single_valued():
            raise NotModelled(f"isl did not find where {data.name} was written last")
        return owners, parts

    def _between(self, sink: isl.Map, write: Write, found: isl.Map) -> isl.Map:
        """A relation between points as one between instances."""
        return _named(found, _in(sink), self._name(write.statement))

    def writes(self, data: Var) -> list[Write]:
        """The writes to a memory that are left, with their times."""
        known = self._known.writes.get(data)
        if known is None:
            known = []
            for statement in self.statements.writers(data):
                access = _unnamed(self._write(statement).intersect_domain(self.domain(statement)))
                instances = self._all(statement)
                timestamp = Timestamp(instances.space, (0, *statement.domain.time), instances.points)
                known.append(Write(statement, timestamp, timestamp.accessing(access)))
            self._known.writes[data] = known
        return known


def _in(relation: isl.Map) -> str:
    name = relation.get_tuple_name(isl.dim_type.in_)
    assert name is not None
    return name


def _named(relation: isl.Map, source: str, target: str) -> isl.Map:
    return relation.set_tuple_name(isl.dim_type.in_, source).set_tuple_name(isl.dim_type.out, target)


def _unnamed(relation: isl.Map) -> isl.Map:
    return relation.reset_tuple_id(isl.dim_type.in_).reset_tuple_id(isl.dim_type.out)
