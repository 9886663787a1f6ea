"""The plain evaluator: runs a program by walking its tree, written to be read; the oracle of the fast one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.dtype import HANDLE, DType
from layoutproof.ir.expr import Compare, Expr, Logical
from layoutproof.ir.interp import runtime
from layoutproof.ir.interp.analysis import Place, place_of, pointee, reads_memory
from layoutproof.ir.interp.generator import Facts
from layoutproof.ir.interp.memory import Fault, FaultKind, Storage, cannot_interpret, over_limit, same_value
from layoutproof.ir.interp.runtime import RaceTable
from layoutproof.ir.interp.walk_expr import (
    Lane,
    State,
    WalkLevel,
    controlling,
    evaluate_lanes,
    evaluate_one,
    store_lanes,
)
from layoutproof.ir.intrinsics import Assume, OpaqueCall, assumed_undef, is_identity
from layoutproof.ir.node import Steps, trampoline
from layoutproof.ir.operators import LogicalOp
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
    Let,
    Seq,
    Stmt,
    body_of,
)

Running = Steps[Stmt, None]
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

    def run(self, stmt: Stmt) -> None:
        """Run one statement; a fault is told its place by the innermost statement."""
        trampoline(self._step, stmt)

    def _step(self, stmt: Stmt) -> Running:
        self.path.append(stmt)
        env = dict(self.state.env)
        try:
            if self.selected():
                inside = _RUNNERS[type(stmt)](self, stmt)
                if inside is not None:
                    yield from inside
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

    def seq(self, s: Seq) -> Running:
        yield from s.body

    def let(self, s: Let) -> Running:
        if s.var.dtype == HANDLE:
            if pointee(s.value) is None:
                raise cannot_interpret(f"the pointer {s.var.name}", s.span)
        else:
            exact = s.value.dtype.is_integer and not reads_memory(s.value)
            self.state.env[s.var.name] = tuple(evaluate_lanes(self.state, s.value, exact))
        yield s.body

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

    def branch(self, s: IfThenElse) -> Running:
        if controlling(self.state, s.condition, "the condition of a branch"):
            yield s.then
        elif s.otherwise is not None:
            yield s.otherwise

    def allocate(self, s: Allocate) -> Running:
        outer = dict(self.state.memory)
        self.make(s.buffer)
        yield s.body
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

    def declare(self, s: DeclBuffer) -> Running:
        if self.state.facts.memories.of(s.buffer) not in self.state.memory:
            raise cannot_interpret(
                f"buffer {s.buffer.name}, whose data {s.buffer.data.name} is not allocated here,", s.span
            )
        yield s.body

    def attribute(self, s: AttrStmt) -> Running:
        yield s.body

    def evaluate(self, s: Evaluate) -> None:
        if isinstance(s.value, OpaqueCall):
            raise cannot_interpret(
                f"the call of {s.value.function}", s.value.span if s.value.span is not None else s.span
            )
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

    def loop(self, s: For) -> Running:
        place = place_of(self.path)
        start = controlling(self.state, s.start, f"the start of loop {s.var.name}", True)
        extent = controlling(self.state, s.extent, f"the extent of loop {s.var.name}", True)
        if start + extent - 1 > s.var.dtype.max_int:
            runtime.overflow(start + extent - 1, str(s.var.dtype))
        level = None
        if s.kind in _CONCURRENT:
            level = WalkLevel(None, {id(storage): RaceTable() for storage in self.state.memory.values()})
            self.state.levels.append(level)
        outer = dict(self.state.env)
        for value in self.values(place, range(start, start + extent)):
            if level is not None:
                level.iteration = value
            self.state.env = {**outer, s.var.name: ((value, False),)}
            yield s.body
        self.state.env = outer
        if level is not None:
            self.state.levels.pop()

    def values(self, place: Place, everything: range) -> range | tuple[int, ...]:
        """The iterations to run, counted."""
        selection = self.state.facts.selection
        choice = selection.loops.get(place) if selection is not None else None
        if choice is not None:
            return choice.values.get(self.key(choice.keys), ())
        self.count += len(everything)
        if self.count > self.limit:
            raise over_limit(self.limit)
        return everything

    def run_block(self, b: Block) -> Running:
        if b.match_buffers:
            raise cannot_interpret(f"match_buffer in block {b.name}", b.span)
        outer = dict(self.state.memory)
        self.block.append(b.name)
        try:
            yield from self.instance(b)
        except Trap as trap:
            raise self.located(Fault(FaultKind.TRAP, str(trap)), b) from None
        except Fault as fault:
            raise self.located(fault, b) from None
        finally:
            self.block.pop()
            self.state.memory = outer

    def instance(self, b: Block) -> Running:
        """One instance: bindings, guard, then what `desugar.body_of` says."""
        self.bind(b)
        for buffer in b.alloc_buffers:
            self.make(buffer)
        if not controlling(self.state, b.where, f"the guard of block {b.name}"):
            return
        wrong = self.inside(b)
        if wrong is not None:
            runtime.outside(b.name, wrong, self.key((wrong,))[0])
        yield body_of(b)

    def bind(self, b: Block) -> None:
        """The iteration variables' values."""
        for v in b.iter_vars:
            value = controlling(self.state, v.binding, f"the binding of {v.var.name}", True)
            self.state.env[v.var.name] = ((value, False),)

    def inside(self, b: Block) -> str | None:
        """The first iteration variable that lies outside its domain."""
        for v in b.iter_vars:
            start = controlling(self.state, v.domain.start, "a domain", True)
            extent = controlling(self.state, v.domain.extent, "a domain", True)
            if not start <= self.key((v.var.name,))[0] < start + extent:
                return v.var.name
        return None


_RUNNERS: Mapping[type, Callable[..., Running | None]] = {
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
