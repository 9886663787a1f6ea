"""The order that barriers give to a kernel: what all threads have done before any goes on is a phase, and a phase is a
parallel loop over the threads.

Where a kernel has barriers of its own they are taken. Where it has none, they are those that TVM puts there for certain
when it lowers the kernel: see `implied`.
That the threads of a phase do not disturb one another is not assumed here: it is what a parallel loop has to satisfy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.expr import Expr, IntImm, Var, negated
from layoutproof.ir.node import Node
from layoutproof.ir.stmt import (
    NOTHING,
    AttrStmt,
    BufferStore,
    For,
    ForKind,
    IfThenElse,
    Let,
    Seq,
    Stmt,
    seq,
)
from layoutproof.ir.threads.axes import Axis, Sharing
from layoutproof.ir.threads.implied import Access, ImpliedBarriers
from layoutproof.ir.threads.kernel_text import Across, Kernel, NotSequential, is_sync
from layoutproof.ir.threads.open_phases import OpenPhase, OpenPhases, Touched, are_apart, in_branch, in_let, is_one
from layoutproof.ir.visit import children, free_variables, loads_in, loops_of_stores, map_children, stores_in, walk

Tags = frozenset[str]
NO_TAGS: Tags = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Nest(Stmt):
    """What stands inside the loops over threads of one phase, which go along `axes` (tags). `repeated`: the phase is in
    a loop.
    """

    body: Stmt
    axes: tuple[str, ...]
    repeated: bool


class Phases:
    """Puts the loops over threads where the barriers are. `sharing` says who shares each memory, by data variable;
    `names` are taken, and grow; `parameters` are memories that may overlap one another.
    """

    def __init__(
        self, kernel: Kernel, sharing: dict[Var, Sharing], names: set[str], parameters: frozenset[Var] = frozenset()
    ) -> None:
        self.kernel = kernel
        self.parameters = parameters
        self.names = names
        self.sharing = sharing
        self.threads = {tag: axis for tag, axis in kernel.axes.items() if not axis.is_block}
        self.tags = {axis.var: tag for tag, axis in self.threads.items()}
        # The axes along which a thread's own memory may differ, and those on which a let's value depends.
        self.spread: dict[Var, Tags] = {}
        self.lets: dict[Var, Tags] = {}
        self._find_spread()
        shared = frozenset(data for data, sharing in self.sharing.items() if sharing is Sharing.BLOCK)
        # None where the kernel has barriers of its own.
        self.barriers = None if kernel.syncs else ImpliedBarriers(kernel.body, shared, list(kernel.axes.values()))
        self.open = OpenPhases(self.on_all_threads, names)
        # Whether threads wait for one another at barriers that the text does not have.
        self.implied = False
        # Memory of the whole grid that two phases touch without a barrier between them, one writing; whether they do if
        # parameters overlap.
        self.unordered: set[Var] = set()
        self.overlaps = False
        # What was asked of statements, which contain one another and are gone through several times.
        self._touched: dict[Stmt, Touched] = {}
        self._waiting: dict[Stmt, bool] = {}

    # ---- what depends on which thread

    def _find_spread(self) -> None:
        before: object = None
        while before != (now := (dict(self.spread), dict(self.lets))):
            before = now
            self._follow(self.kernel.body, NO_TAGS)

    def tags_of(self, *expressions: Expr) -> Tags:
        """The thread axes on which values depend."""
        found: set[str] = set()
        for expression in expressions:
            for v in free_variables(expression):
                found |= {self.tags[v]} if v in self.tags else self.lets.get(v, NO_TAGS)
            for load in loads_in(expression):
                found |= self.spread.get(load.buffer.data, NO_TAGS)
        return frozenset(found)

    def _follow(self, stmt: Stmt, control: Tags) -> None:
        match stmt:
            case BufferStore(buffer=buffer, indices=indices, value=value):
                if self.sharing.get(buffer.data) is Sharing.THREAD:
                    tags = control | self.tags_of(value, *indices)
                    self.spread[buffer.data] = self.spread.get(buffer.data, NO_TAGS) | tags
            case For(start=start, extent=extent, body=body):
                self._follow(body, control | self.tags_of(start, extent))
            case IfThenElse(condition=condition, then=then, otherwise=otherwise):
                inner = control | self.tags_of(condition)
                self._follow(then, inner)
                if otherwise is not None:
                    self._follow(otherwise, inner)
            case Let(var=var, value=value, body=body):
                self.lets[var] = self.lets.get(var, NO_TAGS) | control | self.tags_of(value)
                self._follow(body, control)
            case Across(body=body, axes=axes):
                self._follow_across(body, control, frozenset(axes))
            case _:
                for child in children(stmt):
                    if isinstance(child, Stmt):
                        self._follow(child, control)

    def _follow_across(self, body: Stmt, control: Tags, axes: Tags) -> None:
        """What a reduction over threads leaves is the same for all threads along its axes."""
        written = {store.buffer.data for store in stores_in(body)}
        before = {data: self.spread.get(data, NO_TAGS) for data in written}
        self._follow(body, control)
        for data in written & set(self.spread):
            if before[data] & axes:
                raise NotSequential(
                    "a reduction over threads adds to what differs from thread to thread along its axis", body
                )
            self.spread[data] -= axes

    def depends(self, stmt: Stmt) -> Tags:
        """The thread axes on which what a statement does depends, reductions over threads aside."""
        found: set[str] = set()
        for node in walk(stmt):
            if isinstance(node, Var) and node in self.tags:
                found.add(self.tags[node])
            elif isinstance(node, Var):
                found |= self.lets.get(node, NO_TAGS)
            elif isinstance(node, Buffer):
                found |= self.spread.get(node.data, NO_TAGS)
        return frozenset(found)

    # ---- barriers

    def touched(self, stmt: Stmt) -> Touched:
        """The memories that a statement touches, a thread's own left out."""
        known = self._touched.get(stmt)
        if known is None:
            private = {data for data, sharing in self.sharing.items() if sharing is Sharing.THREAD}
            reads = frozenset(load.buffer.data for load in loads_in(stmt))
            writes = frozenset(store.buffer.data for store in stores_in(stmt))
            known = self._touched[stmt] = Touched(reads - private, writes - private)
        return known

    def _shared(self, memories: AbstractSet[Var]) -> set[Var]:
        return {data for data in memories if self.sharing.get(data) is Sharing.BLOCK}

    def needs_barrier(self, stmt: Stmt) -> bool:
        """Whether threads meet inside a statement, so that no thread can run all of it by itself."""
        known = self._waiting.get(stmt)
        if known is None:
            known = self._waiting[stmt] = self._needs_barrier(stmt)
        return known

    def _needs_barrier(self, stmt: Stmt) -> bool:
        if isinstance(stmt, Across) or is_sync(stmt):
            return True
        if isinstance(stmt, Seq):
            for position, second in enumerate(stmt.body):
                if any(self._barrier_between(first, second) for first in stmt.body[:position]):
                    return True
        if isinstance(stmt, For) and self._barrier_between(stmt.body, stmt.body):
            return True
        return any(self.needs_barrier(child) for child in children(stmt) if isinstance(child, Stmt))

    # ---- phases

    def all_phases(self) -> Stmt:
        """The kernel in phases. A thread's own memory has a copy for each thread that stores to it."""
        self._check_extents()
        while True:
            self.open, self.unordered = OpenPhases(self.on_all_threads, self.names), set()
            result = self.arrange(self.kernel.body)
            if not self._spread_over(result):
                return result

    def _check_extents(self) -> None:
        """That the numbers of threads, which are found before the kernel begins, are the same in each phase."""
        loaded = {load.buffer.data for axis in self.kernel.axes.values() for load in loads_in(axis.extent)}
        written = {store.buffer.data for store in stores_in(self.kernel.body)}
        if loaded & written:
            raise NotSequential("a kernel stores to memory that says how many threads it has", self.kernel.body)
        self.overlaps |= bool(loaded & self.parameters and written & self.parameters)

    def _spread_over(self, arranged: Stmt) -> bool:
        """Have memory differ along the loops in which it is stored to; whether that is new of any."""
        wider = False
        for nest in walk(arranged):
            if not isinstance(nest, Nest):
                continue
            for data in {store.buffer.data for store in stores_in(nest.body)}:
                known = self.spread.get(data, NO_TAGS)
                if self.sharing.get(data) is Sharing.THREAD and not known.issuperset(nest.axes):
                    self.spread[data] = known | frozenset(nest.axes)
                    wider = True
        return wider

    def arrange(self, stmt: Stmt, *, repeated: bool = False) -> Stmt:
        """The statement for all threads. `repeated`: a loop is around it that all threads go through together."""
        if not self.needs_barrier(stmt) and not self._is_parted(stmt):
            return self._phase(stmt, repeated)
        match stmt:
            case Seq(body=body):
                return self._sequence(body, repeated)
            case For(start=start, extent=extent, body=inner, kind=kind):
                self._require_uniform(stmt, start, extent)
                plain = ForKind.SERIAL if kind in (ForKind.VECTORIZED, ForKind.PARALLEL) else kind
                return replace(stmt, kind=plain, body=self.open.loop(stmt, lambda: self.arrange(inner, repeated=True)))
            case IfThenElse(condition=condition, then=then, otherwise=otherwise):
                self._require_uniform(stmt, condition)
                return self._branch(stmt, condition, then, otherwise, repeated)
            case Let(value=value, body=body):
                self._require_uniform(stmt, value)
                with self.open.inside(in_let(stmt)):
                    return replace(stmt, body=self.arrange(body, repeated=repeated))
            case AttrStmt(body=body):
                return self.arrange(body, repeated=repeated)
            case Across(body=body, axes=axes):
                return self._across(stmt, body, axes, repeated)
            case _:
                self.open.close()  # a barrier
                return NOTHING

    def _branch(
        self, stmt: IfThenElse, condition: Expr, then: Stmt, otherwise: Stmt | None, repeated: bool
    ) -> IfThenElse:
        before = list(self.open.open)
        with self.open.inside(in_branch(condition, stmt)):
            chosen = self.arrange(then, repeated=repeated)
        after, self.open.open = self.open.open, before
        other = None
        if otherwise is not None:
            with self.open.inside(in_branch(negated(condition), stmt)):
                other = self.arrange(otherwise, repeated=repeated)
        numbers = {phase.number for phase in before}
        self.open.open = [*before, *(p for p in (*after, *self.open.open) if p.number not in numbers)]
        return replace(stmt, then=chosen, otherwise=other)

    def _require_uniform(self, stmt: Stmt, *expressions: Expr) -> None:
        if self.tags_of(*expressions):
            raise NotSequential("not all threads of a block reach the barriers inside", stmt)
        written = {store.buffer.data for store in stores_in(self.kernel.body)}
        loaded = {load.buffer.data for expression in expressions for load in loads_in(expression)}
        if loaded & written:
            raise NotSequential("what the kernel computes decides whether threads reach the barriers inside", stmt)
        self.overlaps |= bool(loaded & self.parameters and written & self.parameters)

    def _sequence(self, statements: Iterable[Stmt], repeated: bool) -> Stmt:
        done: list[Stmt] = []
        group: list[Stmt] = []

        def close() -> None:
            if group:
                done.append(self._phase(seq(*group), repeated))
                group.clear()

        for stmt in statements:
            if self.needs_barrier(stmt) or self._is_parted(stmt, *group):
                close()
                done.append(self.arrange(stmt, repeated=repeated))
                continue
            whole = seq(*group)
            if group and (
                self._barrier_between(whole, stmt) or self._barrier_before(stmt) or self._may_part(whole, stmt)
            ):
                close()
            group.append(stmt)
        close()
        return seq(*done)

    def _accesses(self, stmt: Stmt) -> Sequence[Access]:
        return () if self.barriers is None else self.barriers.accesses(stmt)

    def _barrier_between(self, first: Stmt, second: Stmt) -> bool:
        return self.barriers is not None and self.barriers.between(self._accesses(first), self._accesses(second))

    def _barrier_before(self, stmt: Stmt) -> int:
        """How many of the open phases a barrier that TVM puts in separates from a statement: all up to the last that
        meets it. It may stand anywhere between the two.
        """
        if self.barriers is None:
            return 0
        mine = self._accesses(stmt)
        numbered = enumerate(self.open.open, start=1)
        meeting = (n if phase.is_one else n - 1 for n, phase in numbered if self._meets(phase, mine))
        return max(meeting, default=0)

    def _meets(self, phase: OpenPhase, accesses: Sequence[Access]) -> bool:
        return self.barriers is not None and self.barriers.between(phase.accesses, accesses)

    def _is_parted(self, stmt: Stmt, *earlier: Stmt) -> bool:
        """Whether a barrier that TVM puts in before something of a statement may stand inside the statement."""
        meeting = not is_one(stmt) and (self._barrier_between(seq(*earlier), stmt) or self._barrier_before(stmt))
        return bool(meeting)

    def _may_part(self, first: Stmt, second: Stmt) -> bool:
        """Whether two parts of a phase depend on different axes and touch no common memory: then it is the same whether
        each thread goes on at once or waits.
        """
        return self.depends(first) != self.depends(second) and not self.touched(first).meets(self.touched(second))

    def _phase(self, stmt: Stmt, repeated: bool) -> Stmt:
        """A statement that each thread runs by itself: once for all threads along an axis that makes no difference."""
        if stmt == NOTHING:
            return stmt
        depends, inside = self.depends(stmt), self.touched(stmt)
        # Threads that do the same disturb one another if they read what they store, or store different values in turn.
        again = bool(inside.reads & inside.writes) or self._stores_in_turn(stmt)
        along = [axis for tag, axis in self.threads.items() if axis.index == axis.var and (tag in depends or again)]
        # So they do if what they store is what others read by another name.
        touched = self.parameters & (inside.reads | inside.writes)
        self.overlaps |= len(touched) > 1 and bool(inside.writes & touched) and not again
        self._follow_up(stmt)
        return self._nest(stmt, along, repeated)

    def _stores_in_turn(self, stmt: Stmt) -> bool:
        """Whether a thread may store to one cell more than once, its own memory left out."""
        seen, lets = set[Var](), {node.var for node in walk(stmt) if isinstance(node, Let)}
        for store, loops in zip(stores_in(stmt), loops_of_stores(stmt), strict=True):
            data = store.buffer.data
            if self.sharing.get(data) is Sharing.THREAD:
                continue
            if data in seen or not are_apart(store, loops, lets):
                return True
            seen.add(data)
        return False

    def _across(self, stmt: Stmt, body: Stmt, axes: tuple[str, ...], repeated: bool) -> Stmt:
        if any(self.kernel.axes[tag].is_block for tag in axes):
            raise NotSequential("a reduction over the blocks of a grid, which do not wait for one another", stmt)
        depends = self.depends(body) - set(axes)
        along = [axis for tag, axis in self.threads.items() if tag in depends]
        inner = body
        for tag in reversed(axes):
            inner = loop_over(self.threads[tag], ForKind.SERIAL, inner, stmt)
        self._follow_up(stmt)
        return self._nest(inner, along, repeated)

    def _nest(self, stmt: Stmt, along: list[Axis], repeated: bool) -> Stmt:
        result: Stmt = Nest(stmt, tuple(axis.tag for axis in along), repeated)
        for axis in reversed(along):
            result = loop_over(axis, ForKind.PARALLEL, result, stmt)
        return result

    def _follow_up(self, stmt: Stmt) -> None:
        """A phase after those that are open: where it meets them, a barrier has to be between."""
        mine = self.touched(stmt)
        separate = self._barrier_before(stmt)
        if separate:
            self.implied = True
            # The barrier is put in for shared memory. It need not be where other memory would want it.
            self.open.forget((data for data, sharing in self.sharing.items() if sharing is Sharing.BLOCK), separate)
        self.overlaps |= any(phase.touched.meets_in(self.parameters, mine) for phase in self.open.open)
        meeting = self.open.meeting(mine)
        if self.kernel.syncs and meeting:
            self._require_apart(meeting, stmt)
        elif meeting:
            common = {data for phase in meeting for data in phase.touched.meets(mine)}
            shared = self._shared(common)
            if shared:
                self._require_apart([phase for phase in meeting if phase.touched.meets(mine) & shared], stmt)
            self.unordered |= common - shared
        # One by one: what comes next may wait for some of it only, and a barrier stand between.
        for part in stmt.body if isinstance(stmt, Seq) else (stmt,):
            self.open.add(part, self.touched(part), self._accesses(part))

    def _require_apart(self, meeting: list[OpenPhase], stmt: Stmt) -> None:
        if any(isinstance(node, Across) for each in (stmt, *(p.stmt for p in meeting)) for node in walk(each)):
            raise NotSequential("a reduction over threads meets others without a barrier between them", stmt)
        self.open.require_apart(meeting, stmt)

    def on_all_threads(self, stmt: Stmt) -> Stmt:
        """A statement in loops over all threads."""
        for axis in reversed(self.threads.values()):
            if axis.index == axis.var:
                stmt = loop_over(axis, ForKind.PARALLEL, stmt, stmt)
        return stmt


def loop_over(axis: Axis, kind: ForKind, body: Stmt, place: Stmt) -> Stmt:
    """A loop over the threads along an axis."""
    return For(axis.var, IntImm(0, axis.var.dtype), axis.extent, kind, body, span=place.span)


def without_barriers(stmt: Node) -> Stmt:
    """The statement, its barriers taken away."""

    def visit(node: Node) -> Node:
        if isinstance(node, Seq):
            return seq(*(s for child in node.body if not is_sync(child) and isinstance(s := visit(child), Stmt)))
        if isinstance(node, Stmt) and is_sync(node):
            return NOTHING
        return map_children(node, visit)

    result = visit(stmt)
    assert isinstance(result, Stmt)
    return result
