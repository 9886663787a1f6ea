"""The plain evaluator: a program run by walking its tree, written to be read beside `programs`' rules rather than to be fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.dtype import HANDLE, DType
from layoutproof.ir.expr import Compare, Expr, Logical, LogicalOp
from layoutproof.ir.interp import runtime
from layoutproof.ir.interp.facts import InitScope, Place, assumed_undef, is_identity, place_of, pointee, reads_memory
from layoutproof.ir.interp.fault import Fault, FaultKind, cannot_interpret, over_limit
from layoutproof.ir.interp.generator import Facts
from layoutproof.ir.interp.memory import Storage, same_value
from layoutproof.ir.interp.runtime import RaceTable
from layoutproof.ir.interp.walk_expr import Lane, State, WalkLevel, controlling, evaluate_lanes, evaluate_one, store_lanes
from layoutproof.ir.intrinsics import Assume, OpaqueCall
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import (
    Allocate,
    AttrStmt,
    Block,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    IterKind,
    Let,
    Seq,
    Stmt,
)
from layoutproof.ir.visit import free_variables, stores_in

NewMemory = Callable[[str, int, int, int], Storage]
_CONCURRENT = (ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.THREAD_BINDING)


@dataclass(slots=True)
class Walker:
    """A run under way."""

    state: State
    limit: int
    new_memory: NewMemory
    count: int = 0
    path: list[Stmt] = field(default_factory=list)
    block: list[str] = field(default_factory=list)
    initialised: dict[Place, set[tuple[int, ...]]] = field(default_factory=dict)

    def run(self, stmt: Stmt) -> None:
        """Run one statement; a fault is told its place by the innermost statement."""
        self.path.append(stmt)
        env = dict(self.state.env)
        try:
            if self.selected():
                _RUNNERS[type(stmt)](self, stmt)
        except Trap as trap:
            raise self.located(Fault(FaultKind.TRAP, str(trap)), stmt) from None
        except Fault as fault:
            raise self.located(fault, stmt) from None
        finally:
            self.path.pop()
            self.state.env = env

    def located(self, fault: Fault, stmt: Stmt) -> Fault:
        """The fault with the statement's place, the block and the variables, where it had none."""
        values = {k: v[0][0] if len(v) == 1 else tuple(x for x, _ in v) for k, v in self.state.env.items()}
        return fault.located(stmt.span, self.block[-1] if self.block else None, values)

    def seq(self, s: Seq) -> None:
        for child in s.body:
            self.run(child)

    def let(self, s: Let) -> None:
        if s.var.dtype == HANDLE:
            if pointee(s.value) is None:
                raise cannot_interpret(f"the pointer {s.var.name}", s.span)
        else:
            exact = s.value.dtype.is_integer and not reads_memory(s.value)
            self.state.env[s.var.name] = tuple(evaluate_lanes(self.state, s.value, exact))
        self.run(s.body)

    def store(self, s: BufferStore) -> None:
        store_lanes(self.state, s.buffer, s.indices, evaluate_lanes(self.state, s.value))

    def selected(self) -> bool:
        """Whether a partial run has the statement at hand."""
        selection = self.state.facts.selection
        choices = selection.choices(place_of(self.path)) if selection is not None else None
        return choices is None or any(self.key(choice.keys) in choice.points for choice in choices)

    def key(self, names: tuple[str, ...]) -> tuple[int, ...]:
        """The values of loop variables."""
        return tuple(int(self.state.env[name][0][0]) for name in names)

    def branch(self, s: IfThenElse) -> None:
        if controlling(self.state, s.condition, "the condition of a branch"):
            self.run(s.then)
        elif s.otherwise is not None:
            self.run(s.otherwise)

    def allocate(self, s: Allocate) -> None:
        outer = dict(self.state.memory)
        self.make(s.buffer)
        self.run(s.body)
        self.state.memory = outer

    def make(self, buffer: Buffer) -> None:
        """Fresh memory for a buffer."""
        memories = self.state.facts.memories
        extents = [controlling(self.state, e, "a shape", True) for e in buffer.shape]
        elements = 1
        if buffer.strides:
            for extent, stride in zip(extents, buffer.strides, strict=True):
                elements += (extent - 1) * controlling(self.state, stride, "a stride", True)
        else:
            for extent in extents:
                elements *= extent
        elements += controlling(self.state, buffer.elem_offset, "an offset", True)
        root = memories.of(buffer)
        self.state.memory[root] = self.new_memory(root, elements, buffer.dtype.bytes, memories.units[root])

    def declare(self, s: DeclBuffer) -> None:
        if self.state.facts.memories.of(s.buffer) not in self.state.memory:
            raise cannot_interpret(f"buffer {s.buffer.name}, whose data {s.buffer.data.name} is not allocated here,", s.span)
        self.run(s.body)

    def attribute(self, s: AttrStmt) -> None:
        self.run(s.body)

    def evaluate(self, s: Evaluate) -> None:
        if isinstance(s.value, OpaqueCall):
            raise cannot_interpret(f"the call of {s.value.function}", s.value.span if s.value.span is not None else s.span)
        if not isinstance(s.value, Assume):
            evaluate_lanes(self.state, s.value)
        elif not self.assumed(s.value.condition):
            runtime.violated()

    def assumed(self, condition: Expr) -> bool:
        """Whether an assumption holds; `A[...] == undef` makes it hold."""
        if isinstance(condition, Logical):
            left = self.assumed(condition.lhs)
            return left if left == (condition.op is LogicalOp.OR) else self.assumed(condition.rhs)
        load = assumed_undef(condition)
        if load is not None:
            element = load.buffer.dtype.element
            lanes: list[Lane] = [(self.state.undef(element), True) for _ in range(load.dtype.lanes)]
            store_lanes(self.state, load.buffer, load.indices, lanes, assumed=True)
            return True
        if is_identity(condition) and isinstance(condition, Compare):
            (a, p), (b, q) = evaluate_one(self.state, condition.lhs), evaluate_one(self.state, condition.rhs)
            if p or q:
                runtime.undefined("an assumption")
            return same_value(float(a), float(b))
        return bool(controlling(self.state, condition, "an assumption"))

    def loop(self, s: For) -> None:
        place = place_of(self.path)
        start = controlling(self.state, s.start, f"the start of loop {s.var.name}", True)
        extent = controlling(self.state, s.extent, f"the extent of loop {s.var.name}", True)
        if start + extent - 1 > s.var.dtype.max_int:
            runtime.overflow(start + extent - 1, str(s.var.dtype))
        pending = [p for p, scope in self.state.facts.scopes.items() if scope.loop is not None and scope.place == place]
        self.initialised.update((p, set()) for p in pending)
        level = None
        if s.kind in _CONCURRENT:
            level = WalkLevel(None, {id(storage): RaceTable() for storage in self.state.memory.values()})
            self.state.levels.append(level)
        outer = dict(self.state.env)
        for value in self.values(s, place, range(start, start + extent)):
            if level is not None:
                level.iteration = value
            self.state.env = {**outer, s.var.name: ((value, False),)}
            self.run(s.body)
        self.state.env = outer
        if level is not None:
            self.state.levels.pop()
        for p in pending:
            self.pending(self.state.facts.scopes[p], 0, p)

    def values(self, s: For, place: Place, everything: range) -> range | tuple[int, ...]:
        """The iterations to run, counted."""
        selection = self.state.facts.selection
        choice = selection.loops.get(place) if selection is not None else None
        if choice is not None:
            return choice.values.get(self.key(choice.keys), ())
        self.count += len(everything)
        if self.count > self.limit:
            raise over_limit(self.limit)
        return everything

    def run_block(self, b: Block) -> None:
        if b.match_buffers:
            raise cannot_interpret(f"match_buffer in block {b.name}", b.span)
        outer = dict(self.state.memory)
        self.block.append(b.name)
        try:
            self.instance(b)
        except Trap as trap:
            raise self.located(Fault(FaultKind.TRAP, str(trap)), b) from None
        except Fault as fault:
            raise self.located(fault, b) from None
        finally:
            self.block.pop()
            self.state.memory = outer

    def instance(self, b: Block) -> None:
        """One instance: bindings, guard, init where it is due, body."""
        self.bind(b)
        for buffer in b.alloc_buffers:
            self.make(buffer)
        place = place_of(self.path)
        scope = self.state.facts.scopes.get(place)
        own = b.init is not None and (scope is None or scope.loop is None)
        if own and self.inside(b, spatial_only=True) is None:
            assert b.init is not None
            self.run(b.init)
        if not controlling(self.state, b.where, f"the guard of block {b.name}"):
            return
        wrong = self.inside(b)
        if wrong is not None:
            runtime.outside(b.name, wrong, self.key((wrong,))[0])
        if b.init is not None and not own:
            self.init_once(b, place)
        self.run(b.body)

    def bind(self, b: Block) -> None:
        """The iteration variables' values."""
        for v in b.iter_vars:
            value = controlling(self.state, v.binding, f"the binding of {v.var.name}", True)
            self.state.env[v.var.name] = ((value, False),)

    def inside(self, b: Block, *, spatial_only: bool = False) -> str | None:
        """The first iteration variable that lies outside its domain."""
        for v in b.iter_vars:
            if spatial_only and v.kind is IterKind.REDUCE:
                continue
            start = controlling(self.state, v.domain.start, "a domain", True)
            extent = controlling(self.state, v.domain.extent, "a domain", True)
            if not start <= self.key((v.var.name,))[0] < start + extent:
                return v.var.name
        return None

    def init_once(self, b: Block, place: Place) -> None:
        """Init, unless this reduction has run it for the spatial instance."""
        assert b.init is not None
        key = self.key(tuple(v.var.name for v in b.iter_vars if v.kind is not IterKind.REDUCE))
        if key not in self.initialised[place]:
            self.initialised[place].add(key)
            self.run(b.init)

    def pending(self, scope: InitScope, position: int, place: Place) -> None:
        """After a reduction: init for its spatial instances that had no executed update. Down the path, loops of spatial
        variables run, the reduction's are left out; a branch counts where its condition can be told without those."""
        stmt = scope.path[position]
        outer = dict(self.state.env)
        following = True
        if position == 0 and self.init_is_gone(scope):
            return
        if isinstance(stmt, Block) and position + 1 == len(scope.path):
            self.pending_instance(stmt, place)
            following = False
        elif isinstance(stmt, For) and stmt.var.name in scope.spatial:
            self.pending_loop(scope, position, stmt, place)
            following = False
        elif isinstance(stmt, IfThenElse) and self.available(stmt.condition):
            taken = bool(controlling(self.state, stmt.condition, "the condition of a branch"))
            following = taken == (scope.path[position + 1] is stmt.then)
        elif isinstance(stmt, Let) and stmt.var.dtype.is_integer and self.available(stmt.value):
            self.state.env[stmt.var.name] = tuple(evaluate_lanes(self.state, stmt.value, True))
        elif isinstance(stmt, Block):
            for v in stmt.iter_vars:
                if self.available(v.binding):
                    self.state.env[v.var.name] = ((controlling(self.state, v.binding, v.var.name, True), False),)
            following = not self.available(stmt.where) or bool(controlling(self.state, stmt.where, "a guard"))
        if following:
            self.pending(scope, position + 1, place)
        self.state.env = outer

    def init_is_gone(self, scope: InitScope) -> bool:
        """Whether init writes memory that is allocated inside the reduction."""
        block = scope.path[-1]
        assert isinstance(block, Block) and block.init is not None
        memories = self.state.facts.memories
        made = {memories.of(s.buffer) for s in scope.path if isinstance(s, Allocate)}
        made |= {memories.of(b) for s in scope.path if isinstance(s, Block) for b in s.alloc_buffers}
        return bool(made & {memories.of(store.buffer) for store in stores_in(block.init)})

    def pending_instance(self, b: Block, place: Place) -> None:
        """Init of one spatial instance, if it has not run."""
        for v in b.iter_vars:
            if v.kind is IterKind.REDUCE:
                continue
            if not self.available(v.binding):
                raise cannot_interpret(f"a reduction whose spatial variable {v.var.name} depends on its reduction loops", b.span)
            self.state.env[v.var.name] = ((controlling(self.state, v.binding, v.var.name, True), False),)
        if self.inside(b, spatial_only=True) is None:
            self.block.append(b.name)
            self.init_once(b, place)
            self.block.pop()

    def pending_loop(self, scope: InitScope, position: int, s: For, place: Place) -> None:
        """The iterations of a spatial loop."""
        if not (self.available(s.start) and self.available(s.extent)):
            raise cannot_interpret(f"a reduction whose spatial loop {s.var.name} depends on its reduction loops", s.span)
        start, extent = controlling(self.state, s.start, s.var.name, True), controlling(self.state, s.extent, s.var.name, True)
        for value in range(start, start + extent):
            self.state.env[s.var.name] = ((value, False),)
            self.pending(scope, position + 1, place)

    def available(self, e: Expr) -> bool:
        """Whether an expression can be evaluated without the loops that were left out."""
        return not reads_memory(e) and all(v.name in self.state.env or v.name in self.state.facts.symbols for v in free_variables(e))


_RUNNERS: Mapping[type, Callable[..., None]] = {
    Seq: Walker.seq,
    For: Walker.loop,
    IfThenElse: Walker.branch,
    Let: Walker.let,
    BufferStore: Walker.store,
    Allocate: Walker.allocate,
    DeclBuffer: Walker.declare,
    Evaluate: Walker.evaluate,
    AttrStmt: Walker.attribute,
    Block: Walker.run_block,
}

RUN = frozenset(_RUNNERS)
"""The node types that the plain evaluator runs."""


def walk_program(
    func: PrimFunc,
    facts: Facts,
    storages: Mapping[str, Storage],
    floats: Mapping[str, float],
    limit: int,
    new_memory: NewMemory,
    undef: Callable[[DType], int | float],
) -> int:
    """Run a function to its end; the iterations counted. Raises Fault, and LayoutproofError past the limit."""
    walker = Walker(State(facts, dict(storages), floats, undef), limit, new_memory)
    walker.run(func.body)
    return walker.count
