"""Reductions over threads whose values are tuples, such as the index and the value of an `argmax`, as sums.

The k memories of a reduction become one, and a joining of tuples becomes a sum: what is joined stands as an element of
a table of integers that may hold anything, one for each tuple of inputs. Sums of such elements are equal, whatever the
table holds, only if they have the same elements as often. So if the programs with sums are the same, each result is
joined from the same tuples, and from starting values. That this makes it the same takes laws of the combiner, which are
asked of a prover, for all values of its types: it is associative, and a starting value that is joined again changes
nothing. If the order matters (ties), the program before has to be one whose threads join in any order, too: then what
the program after has is one of its results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import HANDLE, INT64
from layoutproof.ir.expr import Expr, IntImm, Var
from layoutproof.ir.intrinsics import OpaqueCall, Undef
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, Block, BufferStore, DeclBuffer, Let, Seq, Stmt, seq
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.threads.sequential import Sequential
from layoutproof.ir.visit import (
    buffers_in,
    children,
    free_variables,
    loads_in,
    map_children,
    names_in,
    stores_in,
    substitute,
    take_fresh,
    walk,
)
from layoutproof.lowering.compare.tuple_laws import Combiner, NotPacked, certain_loads, chosen, laws_of, replaced
from layoutproof.verify.values.prover import ValueProver
from layoutproof.verify.values.terms import can_trap_below, constant_value
from layoutproof.verify.verdict.verdict import Status


@dataclass(frozen=True, slots=True)
class Packed:
    """Both programs with sums in the place of joined tuples, and the fast-math assumptions that this takes."""

    before: PrimFunc
    after: PrimFunc
    fast_math: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Event:
    """Stores of one tuple: at `indices` of each memory, in order of the text, its value over what was there before."""

    stores: tuple[BufferStore, ...]

    @property
    def indices(self) -> tuple[Expr, ...]:
        return self.stores[0].indices

    @property
    def data(self) -> tuple[Var, ...]:
        return tuple(store.buffer.data for store in self.stores)


@dataclass(slots=True)
class _Shared:
    """What both programs have to have in common."""

    combiner: Combiner | None = None
    start: tuple[Expr, ...] | None = None
    tables: dict[tuple[object, ...], Buffer] = field(default_factory=dict[tuple[object, ...], Buffer])
    names: set[str] = field(default_factory=set[str])


def packed(before: Sequential, after: Sequential, prover: ValueProver) -> Packed:
    """Two programs whose threads join tuples. Raises NotPacked."""
    shared = _Shared()
    for form in (before, after):
        func = form.func
        shared.names |= names_in(func.body) | {p.name for p in func.params} | {b.name for b in func.buffers}
        shared.names |= {b.data.name for b in (*func.buffers, *buffers_in(func.body))}
    sides = [_Side(form, shared) for form in (before, after)]
    _close(sides)
    bodies = [side.written() for side in sides]
    if shared.combiner is None or shared.start is None:
        raise NotPacked("tuples that are joined without a combiner or a starting value")
    fast_math = laws_of(shared.combiner, shared.start, prover, sides[0].joins_in_any_order())
    for side, body in zip(sides, bodies, strict=True):
        _check_starts(side.function(body, hidden=True))
    first, second = (side.function(body) for side, body in zip(sides, bodies, strict=True))
    return Packed(first, second, fast_math)


def _check_starts(func: PrimFunc) -> None:
    """That each tuple was started before anything is joined to it. Raises NotPacked."""
    from layoutproof.verify.faults.facts import Facts
    from layoutproof.verify.faults.reads import prove_readable

    if any(verdict.status is not Status.PROVED for verdict in prove_readable(Facts.of(func.with_parameters_apart()))):
        raise NotPacked("a tuple that may not be started before something is joined to it")


def _close(sides: Sequence[_Side]) -> None:
    """Find the memories of tuples in both programs: parameters of the one are parameters of the other."""
    while True:
        sizes = [len(side.memories) for side in sides]
        places = {k for side in sides for k, b in enumerate(side.form.func.buffers) if b.data in side.memories}
        for side in sides:
            buffers = side.form.func.buffers
            if any(k >= len(buffers) for k in places):
                raise NotPacked("tuples in parameters that only one of the programs has")
            side.memories |= {buffers[k].data for k in places}
            side.spread()
        if sizes == [len(side.memories) for side in sides]:
            return


class _Side:
    """One of the programs."""

    def __init__(self, form: Sequential, shared: _Shared) -> None:
        self.form, self.shared = form, shared
        self.memories: set[Var] = set(form.tuples)
        self.updates: list[frozenset[Var]] = []
        self.stages = False
        self.written_to = {store.buffer.data for store in stores_in(form.func.body)}
        self.parameters = {buffer.data: k for k, buffer in enumerate(form.func.buffers)}
        self._component: dict[Var, int] = {}
        self._packed: dict[Var, Buffer] = {}

    # ---- which memories hold tuples

    def spread(self) -> None:
        """Add the memories that are stored together with known ones, or from which tuples come."""
        while True:
            size = len(self.memories)
            for event in self._events(self.form.func.body):
                self.memories |= set(event.data)
                for store in event.stores:
                    self.memories |= {load.buffer.data for load in loads_in(store.value)} & self.written_to
            if len(self.memories) == size:
                return

    def _events(self, stmt: Stmt) -> Iterator[_Event]:
        found, rest = self._split(stmt)
        yield from found
        for each in rest:
            for child in children(each):
                if isinstance(child, Stmt):
                    yield from self._events(child)

    def _split(self, stmt: Stmt) -> tuple[list[_Event], list[Stmt]]:
        """The events that a statement is made of, and its other parts."""
        if isinstance(stmt, Let) and self._touches(stmt) and (event := self._of_let(stmt)) is not None:
            return [event], []
        if isinstance(stmt, Seq | BufferStore):
            parts = self._parts(stmt.body if isinstance(stmt, Seq) else (stmt,))
            events = [part for part in parts if isinstance(part, _Event)]
            more = [self._split(part) for part in parts if isinstance(part, Let)]
            events += [event for each, _ in more for event in each]
            rest = [part for part in parts if isinstance(part, Stmt) and not isinstance(part, Let | BufferStore)]
            return events, [*rest, *(part for _, each in more for part in each)]
        return [], [stmt]

    def _parts(self, stmts: Sequence[Stmt]) -> list[_Event | Stmt]:
        """Statements in order, those that store a tuple together as one event."""
        parts: list[_Event | Stmt] = []
        run: list[BufferStore] = []

        def finish() -> None:
            if run:
                parts.append(self._event(tuple(run)))
                run.clear()

        for stmt in stmts:
            if not (isinstance(stmt, BufferStore) and self._touches(stmt)):
                finish()
                parts.append(stmt)
                continue
            if run and (stmt.indices != run[0].indices or any(s.buffer.data == stmt.buffer.data for s in run)):
                finish()
            run.append(stmt)
        finish()
        return parts

    def _event(self, stores: tuple[BufferStore, ...]) -> _Event:
        for k, store in enumerate(stores):
            earlier = {s.buffer.data for s in stores[:k]}
            if any(load.buffer.data in earlier for load in loads_in(store.value)):
                raise NotPacked(f"what is stored to {store.buffer.name} depends on what was just stored")
        return _Event(stores)

    def _of_let(self, stmt: Let) -> _Event | None:
        """The stores of values that lets bind before; None where the lets stand around anything else."""
        inner: Stmt = stmt
        lets: list[Let] = []
        while isinstance(inner, Let):
            lets.append(inner)
            inner = inner.body
        stores = inner.body if isinstance(inner, Seq) else (inner,)
        plain = [store for store in stores if isinstance(store, BufferStore)]
        if len(plain) < len(stores):
            return None
        if any(next(loads_in(store), None) is not None for store in plain):
            raise NotPacked("a tuple that is stored partly from lets")
        values: dict[Var, Expr] = {}
        for let in lets:
            values[let.var] = substitute(let.value, values)
        made = tuple(replace(store, value=substitute(store.value, values)) for store in plain)
        if any(free in values for store in made for e in store.indices for free in free_variables(e)):
            raise NotPacked("a tuple that is stored at a place that a let binds")
        return _Event(made)

    def _touches(self, node: Node) -> bool:
        return any(n.buffer.data in self.memories for n in walk(node) if isinstance(n, BufferLoad | BufferStore))

    # ---- components

    def _order(self, events: Sequence[_Event]) -> int:
        """Number the components, by the parameters that hold them at the end; how many there are."""
        links: dict[Var, set[Var]] = {data: set() for data in self.memories}
        for event in events:
            for store in event.stores:
                for other in self._tuple_sources(store):
                    links[store.buffer.data].add(other)
                    links.setdefault(other, set()).add(store.buffer.data)
        groups: list[set[Var]] = []
        for data in links:
            if any(data in group for group in groups):
                continue
            group, todo = set[Var](), [data]
            while todo:
                current = todo.pop()
                if current not in group:
                    group.add(current)
                    todo += links[current]
            groups.append(group)
        places = [[self.parameters[data] for data in group if data in self.parameters] for group in groups]
        if any(not place for place in places):
            raise NotPacked("tuples that no parameter holds at the end")
        for number, (_, group) in enumerate(sorted(zip(map(min, places), groups, strict=True), key=lambda e: e[0])):
            self._component |= dict.fromkeys(group, number)
        return len(groups)

    def _tuple_sources(self, store: BufferStore) -> list[Var]:
        """The memories whose component is that of a store: what it copies, or may join to what is there."""
        found = chosen(store.value)
        return [e.buffer.data for e in found if isinstance(e, BufferLoad) and e.buffer.data in self.memories]

    def joins_in_any_order(self) -> bool:
        """Whether all tuples are joined by threads, in one stage: nothing else is joined to a memory to which they
        join, and they join what comes from the inputs.
        """
        joined = [data for update in self.updates for data in update]
        return not self.stages and set(joined) <= self.form.tuples and len(set(joined)) == len(joined)

    # ---- the program with sums

    def written(self) -> Stmt:
        """The body, with one store for each event."""
        events = list(self._events(self.form.func.body))
        number = self._order(events)
        if any(sorted(self._component[d] for d in event.data) != list(range(number)) for event in events):
            raise NotPacked("components of tuples that are stored apart")
        for buffer in dict.fromkeys((*self.form.func.buffers, *buffers_in(self.form.func.body))):
            if buffer.data in self.memories:
                self._note(buffer)
        body = self._statement(self.form.func.body)
        left = [n for n in walk(body) if isinstance(n, BufferLoad | BufferStore) and n.buffer.data in self.memories]
        if left:
            raise NotPacked(f"{left[0].buffer.name} is used outside of its tuple")
        return body

    def _note(self, buffer: Buffer) -> None:
        known = self._packed.get(buffer.data)
        plain = all(s == IntImm(1) for s in buffer.strides) and all(e == IntImm(1) for e in buffer.shape)
        if (buffer.strides and not plain) or buffer.elem_offset != IntImm(0) or buffer.dtype.lanes != 1:
            raise NotPacked(f"{buffer.name} is laid out in another way")
        if known is not None and known.shape != buffer.shape:
            raise NotPacked(f"{buffer.name} is a view of another form")
        if known is None:
            data = Var(take_fresh(f"{buffer.name}_joined", self.shared.names), HANDLE)
            self._packed[buffer.data] = Buffer(buffer.name, INT64, buffer.shape, data, scope=buffer.scope)

    def _statement(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, Let) and self._touches(stmt) and (event := self._of_let(stmt)) is not None:
            return self._stored(event)
        if isinstance(stmt, BufferStore):
            return self._stored(_Event((stmt,))) if self._touches(stmt) else stmt
        if isinstance(stmt, Seq):
            return seq(
                *(self._stored(p) if isinstance(p, _Event) else self._statement(p) for p in self._parts(stmt.body))
            )
        if isinstance(stmt, Allocate):
            return self._allocated(stmt)
        if isinstance(stmt, DeclBuffer) and stmt.buffer.data in self.memories:
            raise NotPacked(f"{stmt.buffer.name} is another view of a tuple's memory")
        if isinstance(stmt, Block):
            if any(b.data in self.memories for b in stmt.alloc_buffers) or stmt.match_buffers:
                raise NotPacked(f"tuples in memory of block {stmt.name}")
            stmt = replace(stmt, reads=None, writes=None)
        return map_children(stmt, lambda child: self._statement(child) if isinstance(child, Stmt) else child)

    def _allocated(self, stmt: Allocate) -> Stmt:
        """Memory that is allocated at one place, that of sums for that of tuples."""
        chain: list[Allocate] = []
        inner: Stmt = stmt
        while isinstance(inner, Allocate):
            chain.append(inner)
            inner = inner.body
        number = Counter(self._component[a.buffer.data] for a in chain if a.buffer.data in self.memories)
        if number and (len(set(number.values())) > 1 or set(number) != set(self._component.values())):
            raise NotPacked("memories of one tuple that are allocated apart")
        body = self._statement(inner)
        for each in reversed(chain):
            if each.buffer.data not in self.memories:
                body = replace(each, body=body)
            elif self._component[each.buffer.data] == 0:
                body = replace(each, buffer=self._packed[each.buffer.data], body=body)
        return body

    def _stored(self, event: _Event) -> Stmt:
        """An event as one store."""
        if any(index.dtype.lanes > 1 for index in event.indices):
            raise NotPacked("tuples in several lanes at once")
        stores = sorted(event.stores, key=lambda s: self._component[s.buffer.data])
        target = self._place(tuple(s.buffer.data for s in stores))
        values = tuple(s.value for s in stores)
        if all(constant_value(value) is not None for value in values):
            if self.shared.start is not None and self.shared.start != values:
                raise NotPacked("tuples that start in several ways")
            self.shared.start = values
            value: Expr = IntImm(0, INT64)
        else:
            copied = self._loaded(values)
            value = copied if copied is not None else self._update(stores, target)
        return BufferStore(target, event.indices, value, span=event.stores[0].span)

    def _place(self, data: Sequence[Var]) -> Buffer:
        """The memory of sums of a tuple's memories, which have one form."""
        found = [self._packed[each] for each in data]
        if any((b.shape, b.scope) != (found[0].shape, found[0].scope) for b in found):
            raise NotPacked(f"{found[0].name} and {found[1].name} have different forms")
        return found[0]

    def _loaded(self, values: Sequence[Expr]) -> Expr | None:
        """The sum in the place of a tuple that is loaded; None for any other."""
        loads = [v for v in values if isinstance(v, BufferLoad) and v.buffer.data in self.memories]
        if len(loads) < len(values):
            return None
        alike = all(load.indices == loads[0].indices for load in loads)
        if not alike or [self._component[load.buffer.data] for load in loads] != list(range(len(loads))):
            raise NotPacked("components of different tuples")
        return BufferLoad(self._place(tuple(load.buffer.data for load in loads)), loads[0].indices)

    def _update(self, stores: Sequence[BufferStore], target: Buffer) -> Expr:
        """What is there, and what is joined to it, as a sum."""
        places = [BufferLoad(store.buffer, store.indices) for store in stores]
        left = tuple(Var(f"left_{k}", p.dtype) for k, p in enumerate(places))
        right = tuple(Var(f"right_{k}", p.dtype) for k, p in enumerate(places))
        standing = dict(zip(places, left, strict=True))
        values = [replaced(store.value, standing) for store in stores]
        operands = [self._operand(value, set(left)) for value in values]
        results = tuple(replaced(v, dict(zip(operands, right, strict=True))) for v in values)
        combiner = Combiner(left, right, results)
        if not set(left) <= {v for result in results for v in free_variables(result)}:
            raise NotPacked("a component that is not looked at when tuples are joined")
        for result in results:
            strange = {*free_variables(result)} - {*left, *right}
            if (
                strange
                or any(isinstance(n, BufferLoad | OpaqueCall | Undef) for n in walk(result))
                or can_trap_below(result)
            ):
                raise NotPacked(f"what is stored to {stores[0].buffer.name} is no function of two tuples")
        if self.shared.combiner not in (None, combiner):
            raise NotPacked("tuples that are joined in several ways")
        self.shared.combiner = combiner
        self.updates.append(frozenset(store.buffer.data for store in stores))
        joined = self._loaded(operands)
        self.stages |= joined is not None
        return BufferLoad(target, stores[0].indices) + (self._element(operands) if joined is None else joined)

    @staticmethod
    def _operand(value: Expr, left: set[Var]) -> Expr:
        """What a component may become that is not of the tuple that is there."""
        found = {e: None for e in chosen(value) if constant_value(e) is None and not set(free_variables(e)) & left}
        if len(found) != 1:
            raise NotPacked("a component that is joined from several values")
        return next(iter(found))

    def _element(self, operands: Sequence[Expr]) -> Expr:
        """The element of a table that stands for a tuple of inputs."""
        loads = [load for e in operands for load in loads_in(e)]
        if not loads or any(load.buffer.data in self.written_to for load in loads):
            raise NotPacked("tuples of what is computed")
        indices = loads[0].indices
        if any(load.indices != indices or load.buffer.shape != loads[0].buffer.shape for load in loads):
            raise NotPacked("tuples of elements at different places")
        if any(load.buffer.data not in self.parameters for load in loads):
            raise NotPacked("tuples of what is no parameter")
        names = {load: Var(f"element_{self.parameters[load.buffer.data]}", load.dtype) for load in loads}
        # Index arithmetic in a tuple has to be one of the places itself: then the place says what it is.
        places = {index: Var(f"place_{k}", index.dtype) for k, index in enumerate(indices) if free_variables(index)}
        said = [replaced(replaced(e, names), places) for e in operands]
        known = {*names.values(), *places.values()}
        if any(v not in known for e in said for v in free_variables(e)):
            raise NotPacked("tuples that depend on more than a place in the inputs")
        if any(isinstance(n, OpaqueCall | Undef) for e in said for n in walk(e)):
            raise NotPacked("tuples of values that are not known")
        # The element of the table is loaded whatever holds: so has to be one of those that it stands for.
        if not any(load in loads for e in operands for load in certain_loads(e)) or any(map(can_trap_below, said)):
            raise NotPacked("tuples of elements that are not always loaded, or that may have no value")
        shape = loads[0].buffer.shape
        key = (*said, len(shape), *(expr_text(e, Style.PLAIN) for e in shape))
        if key not in self.shared.tables:
            name = take_fresh("joined", self.shared.names)
            self.shared.tables[key] = Buffer(
                name, INT64, shape, Var(take_fresh(f"{name}_data", self.shared.names), HANDLE)
            )
        return BufferLoad(self.shared.tables[key], indices)

    def function(self, body: Stmt, *, hidden: bool = False) -> PrimFunc:
        """The function with sums as its results, and the tables as inputs. `hidden`: the results are its own memory, so
        that what they begin with may not be read.
        """
        func, kept, names = self.form.func, list[tuple[Var, Buffer | None]](), set(self.shared.names)
        mapped = dict(func.buffer_map)
        for param in func.params:
            buffer = mapped.get(param)
            if buffer is None or buffer.data not in self.memories:
                kept.append((param, buffer))
            elif self._component[buffer.data] == 0:
                result = self._packed[buffer.data]
                if hidden:
                    body = Allocate(result, body)
                else:
                    kept.append((param, result))
        for number, table in enumerate(self.shared.tables.values()):
            kept.append((Var(take_fresh(f"table_{number}", names), HANDLE), table))
        buffers = tuple((param, buffer) for param, buffer in kept if buffer is not None)
        return replace(func, params=tuple(param for param, _ in kept), buffer_map=buffers, body=body)
