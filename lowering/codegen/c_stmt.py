"""Statements as C text: loops, branches, stores, allocations, and comments that describe buffers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from layoutproof.ir import interval
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import DType, Kind
from layoutproof.ir.expr import Expr, IntImm
from layoutproof.ir.interval import Interval
from layoutproof.ir.node import Steps, trampoline
from layoutproof.ir.stmt import (
    Allocate,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    Let,
    Seq,
    Stmt,
)
from layoutproof.ir.visit import free_variables, loads_in, walk
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.codegen.c_arithmetic import Integers
from layoutproof.lowering.codegen.c_expr import Expressions, Mode
from layoutproof.lowering.codegen.c_memory import access_name
from layoutproof.lowering.codegen.c_types import (
    Binding,
    CType,
    Fragment,
    call,
    is_half,
    model_name_of,
    storage_type,
    value_type,
    variable_type,
)
from layoutproof.lowering.codegen.c_vector import vector_fill, vector_store
from layoutproof.lowering.codegen.calling_convention import Memory, MemoryMap, pointer_source
from layoutproof.lowering.codegen.writer import Names, Writer, comment
from layoutproof.lowering.loops.loop_kinds import is_streamed

STACK_BYTES = 4096  # an allocation of constant size up to this stands on the stack
STACK_TOTAL = 65536  # all of them that are alive at one time
UNROLL_LIMIT = 64
LANE = "lane"


def product_of(extents: tuple[Expr, ...]) -> int | None:
    """The number of elements where every extent is a constant."""
    total = 1
    for extent in extents:
        if not isinstance(extent, IntImm):
            return None
        total *= extent.value
    return total


Writing = Steps[Stmt, None]


@dataclass(slots=True)
class Statements:
    """Writes statements through `expressions`. `macros` collects the loop macros used."""

    expressions: Expressions
    writer: Writer
    names: Names
    noalias: bool
    macros: set[str] = field(default_factory=set)
    may_fail: bool = False
    tiles: Callable[[Statements, For], bool] | None = None  # writes a loop that is marked as a tile, if it is one
    streamed: bool = False  # whether something was written past the cache that no fence follows yet
    open_loops: list[For] = field(default_factory=list)
    _parallel: int = 0  # how many parallel loops are open
    _lanes: int = 0  # how many vectorized ones; threads may not be started inside of them
    _on_stack: int = 0

    def emit(self, stmt: Stmt) -> None:
        """Write one statement. Raises LayoutproofError (LP402) for one that has no place in lowered code."""
        trampoline(self.step, stmt)

    def step(self, stmt: Stmt) -> Writing | None:
        """Write one statement, as a step that asks for what stands inside."""
        emitter = self.emitters().get(type(stmt))
        if emitter is None:
            raise error(
                codes.NOT_LOWERED, f"{self.expressions.target} has no {type(stmt).__name__} statements", stmt.span
            )
        return emitter(self, stmt)

    def emitters(self) -> Mapping[type[Stmt], Callable[[Any, Any], Writing | None]]:
        """How each type of statement is written."""
        return EMITTERS

    def _body(self, head: str, body: Stmt, tail: str = "}") -> None:
        with self.writer.nested(head, tail), self.names.block():
            self.emit(body)

    # --- loops and branches

    def loop(self, stmt: For) -> None:
        """A loop; its bounds are evaluated once."""
        if self._starts_streaming_threads(stmt):
            self._macro("LP_PARALLEL")
            with self.writer.nested(""):
                self.loop_around(stmt, lambda: self.emit(stmt.body), "LP_FOR")
                self._end_streams()  # each thread ends its own
            return
        if self.tiles is None or not is_streamed(stmt) or not self.tiles(self, stmt):
            self.loop_around(stmt, lambda: self.emit(stmt.body))
        if not self.open_loops:
            self._end_streams()

    def _starts_streaming_threads(self, stmt: For) -> bool:
        parallel = stmt.kind is ForKind.PARALLEL and self._parallel == 0 and self._lanes == 0 and self.tiles is not None
        return parallel and any(isinstance(node, For) and is_streamed(node) for node in walk(stmt))

    def _end_streams(self) -> None:
        if self.streamed:
            self.writer.line("lp_stream_end();")
            self.streamed = False

    def loop_around(self, stmt: For, write: Callable[[], None], threads: str = "LP_PARALLEL_FOR") -> None:
        """A loop with the body that `write` writes; `threads` is the macro that distributes its iterations."""
        expressions = self.expressions
        begin, count = self._bound(stmt.start, "start"), self._bound(stmt.extent, "extent")
        end = expressions.integers.index_sum(begin, count) if begin.range != interval.point(0) else count
        inside = Interval(begin.range.low, max(begin.range.low, begin.range.high + count.range.high - 1))
        self._prefix(stmt, count, threads)
        with self.names.block():
            name = self._bind(stmt, inside)
            ctype = expressions.integers.index_type.value
            parallel, lanes = stmt.kind is ForKind.PARALLEL, stmt.kind is ForKind.VECTORIZED
            self._parallel += parallel
            self._lanes += lanes
            self.open_loops.append(stmt)
            with (
                self.writer.nested(f"for ({ctype} {name} = {begin.text}; {name} < {end.at(Binding.SHIFT)}; ++{name})"),
                self.names.block(),
            ):
                write()
            self.open_loops.pop()
            self._parallel -= parallel
            self._lanes -= lanes

    def _bind(self, stmt: For, inside: Interval) -> str:
        name = self.names.declare(stmt.var.name)
        index_type = self.expressions.integers.index_type
        values = inside.clamp(interval.of_type(stmt.var.dtype))
        self.expressions.variables[stmt.var.name] = Fragment(name, Binding.PRIMARY, index_type, values)
        self.expressions.name_index(stmt.var.name, stmt.var.dtype.kind is Kind.INT)
        return name

    def _bound(self, bound: Expr, role: str) -> Fragment:
        """A loop bound; one that reads memory, which the body may change, is read into a variable first."""
        value = self.expressions.emit_index(bound)
        if not any(True for _ in loads_in(bound)):
            return value
        name = self.names.declare(role)
        self.writer.line(f"const {value.ctype.value} {name} = {value.text};")
        return Fragment(name, Binding.PRIMARY, value.ctype, value.values)

    def _prefix(self, stmt: For, count: Fragment, threads: str) -> None:
        match stmt.kind:
            case ForKind.PARALLEL if self._parallel == 0 and self._lanes == 0:
                self._macro(threads)
            case ForKind.VECTORIZED:
                self._macro("LP_SIMD")
            case ForKind.UNROLLED if count.range.low == count.range.high and 1 < count.range.low <= UNROLL_LIMIT:
                self.macros.add("LP_UNROLL")
                self.writer.line(f"LP_UNROLL({count.range.low})")
            case _:
                pass

    def _macro(self, name: str) -> None:
        self.macros.add(name)
        self.writer.line(name)

    def branch(self, stmt: IfThenElse) -> None:
        """`if`, `else if`, `else`."""
        head = f"if ({self.expressions.emit_condition(stmt.condition).text})"
        while True:
            otherwise = stmt.otherwise
            self._body(head, stmt.then, "" if otherwise is not None else "}")
            if otherwise is None:
                return
            if not isinstance(otherwise, IfThenElse):
                self._body("} else", otherwise)
                return
            stmt = otherwise
            head = f"}} else if ({self.expressions.emit_condition(stmt.condition).text})"

    def sequence(self, stmt: Seq) -> Writing:
        """One after the other; an empty sequence is a comment."""
        if not stmt.body:
            self.writer.line("/* nothing to do */")
        yield from stmt.body

    # --- names for values and memory

    def let(self, stmt: Let) -> Writing:
        """A value with a name: a constant of C, an array of lanes, or another name of a pointer."""
        if stmt.var.dtype.kind is Kind.HANDLE:
            source = pointer_source(stmt.value)
            assert source is not None
            self.expressions.pointers[stmt.var.name] = self.expressions.pointers[source.name]
        elif stmt.var.dtype.lanes > 1:
            self._vector(stmt)
        else:
            self._scalar(stmt)
        yield stmt.body

    def _scalar(self, stmt: Let) -> None:
        expressions, dtype = self.expressions, stmt.var.dtype
        index = dtype.kind is Kind.INT and expressions.is_index(stmt.value)
        value = expressions.emit_index(stmt.value) if index else expressions.emit(stmt.value)
        name = self.names.declare(stmt.var.name)
        type_name = expressions.integers.index_type.value if index else variable_type(dtype)
        self.writer.line(f"const {type_name} {name} = {value.text};")
        if stmt.var not in walk(stmt.body):
            self.writer.line(f"(void){name};")
        ctype = expressions.integers.index_type if index else value_type(dtype)
        values = None if dtype.is_float else value.range.clamp(interval.of_type(dtype))
        expressions.variables[stmt.var.name] = Fragment(name, Binding.PRIMARY, ctype, values)
        expressions.name_index(stmt.var.name, index)

    def _vector(self, stmt: Let) -> None:
        dtype = stmt.var.dtype
        name = self.names.declare(stmt.var.name)
        self._fill_lanes(name, stmt.value)
        values = None if dtype.is_float else interval.of_type(dtype.element)
        self.expressions.name_index(stmt.var.name, False)
        self.expressions.variables[stmt.var.name] = Fragment(name, Binding.PRIMARY, value_type(dtype.element), values)

    def _fill_lanes(self, name: str, value: Expr) -> None:
        """An array `name` with one lane of `value` in each place."""
        dtype = value.dtype
        self.writer.line(f"{variable_type(dtype.element)} {name}[{dtype.lanes}];")
        whole = vector_fill(self.expressions, name, value)
        if whole is not None:
            self.writer.line(whole)
            return
        with self.writer.nested(lane_loop(dtype.lanes)):
            self.writer.line(f"{name}[{LANE}] = {self.expressions.emit(value, Mode(lane=lane_of(dtype.lanes))).text};")

    def declare(self, stmt: DeclBuffer) -> Writing:
        """A view: its accesses name the memory itself, so only a comment is left."""
        buffer = stmt.buffer
        memory = self.expressions.memory.of(buffer)
        if memory is not None and memory.buffer.name != buffer.name:
            offset = self.expressions.emit_index(buffer.elem_offset)
            place = f" from element {offset.text}" if offset.range != interval.point(0) else ""
            pointer = self.expressions.pointers.get(buffer.data.name, memory.buffer.name)
            self.writer.line(comment(f"{buffer.name}: {describe(buffer)}, a view of {pointer}{place}"))
        yield stmt.body

    def allocate(self, stmt: Allocate) -> Writing:
        """Memory: small pieces of constant size on the stack, others on the heap, where allocation may fail."""
        buffer = stmt.buffer
        memory = self.expressions.memory.at(buffer)
        elements = product_of(buffer.shape)
        lanes = buffer.dtype.lanes
        size = elements * buffer.dtype.bytes if elements is not None else None
        name = self.names.declare(buffer.name)
        self.expressions.pointers[buffer.data.name] = name
        if size is not None and elements is not None and size <= STACK_BYTES and self._on_stack + size <= STACK_TOTAL:
            self._on_stack += size
            self.writer.line(
                f"_Alignas(64) {memory.storage} {name}[{max(elements * lanes, 1)}]; {comment(describe(buffer))}"
            )
            if not memory.read and not memory.written:
                self.writer.line(f"(void){name};")
            yield stmt.body
            self._on_stack -= size
            return
        yield from self._on_heap(stmt, memory, name)

    def _on_heap(self, stmt: Allocate, memory: Memory, name: str) -> Writing:
        count = self.element_count(stmt.buffer)
        self.expressions.helpers.add("lp_allocate")
        self.may_fail = True
        pointer = f"{memory.storage} *const {name}"
        self.writer.line(f"{pointer} = lp_allocate({count.text}, sizeof *{name}); {comment(describe(stmt.buffer))}")
        with self.writer.nested(f"if ({name} == NULL)", ""):
            if self._parallel > 0:
                self._macro("LP_ATOMIC_WRITE")
            self.writer.line("error = LP_NO_MEMORY;")
        with self.writer.nested("} else"), self.names.block():
            yield stmt.body
            self.writer.line(f"free({name});")

    def element_count(self, buffer: Buffer) -> Fragment:
        """The number of single lanes that `buffer` holds."""
        integers = self.expressions.integers
        lanes = buffer.dtype.lanes
        count = Fragment(str(lanes), Binding.PRIMARY, CType.I32, interval.point(lanes))
        for axis, extent in enumerate(buffer.shape):
            size = self.expressions.emit_index(extent)
            count = size if axis == 0 and lanes == 1 else integers.index_product(count, size)
        return count

    # --- stores

    def store(self, stmt: BufferStore) -> None:
        """One element, a whole vector, or a loop over lanes; lanes that could read what others write are collected
        first.
        """
        lanes = stmt.value.dtype.lanes
        if lanes == 1:
            self._store_lane(stmt, None, self.expressions.emit(stmt.value))
        elif (whole := vector_store(self.expressions, stmt)) is not None:
            self.writer.line(whole)
        elif self.is_independent(stmt):
            with self.writer.nested(lane_loop(lanes)):
                lane = lane_of(lanes)
                self._store_lane(stmt, lane, self.expressions.emit(stmt.value, Mode(lane=lane)))
        else:
            self._store_collected(stmt, lanes)

    def _store_collected(self, stmt: BufferStore, lanes: int) -> None:
        with self.writer.nested(""), self.names.block():
            name = self.names.declare("lanes")
            self._fill_lanes(name, stmt.value)
            address: Fragment | None = None
            if any(True for index in stmt.indices for _ in loads_in(index)):
                where = self.names.declare("places")
                self.writer.line(f"int64_t {where}[{lanes}];")
                with self.writer.nested(lane_loop(lanes)):
                    self.writer.line(f"{where}[{LANE}] = {self.expressions.address(stmt, lane_of(lanes)).text};")
                address = Fragment(f"{where}[{LANE}]", Binding.PRIMARY, CType.I64)
            with self.writer.nested(lane_loop(lanes)):
                dtype = stmt.value.dtype.element
                values = None if dtype.is_float else interval.of_type(dtype)
                value = Fragment(f"{name}[{LANE}]", Binding.PRIMARY, value_type(dtype), values)
                self._store_lane(stmt, lane_of(lanes), value, address)

    def _store_lane(
        self, stmt: BufferStore, lane: Fragment | None, value: Fragment, address: Fragment | None = None
    ) -> None:
        expressions, buffer = self.expressions, stmt.buffer
        memory = self.expressions.memory.at(buffer)
        place = address if address is not None else expressions.address(stmt, lane)
        stored = self._stored(value, buffer.dtype.element)
        pointer = expressions.pointers[buffer.data.name]
        if memory.mixed:
            name = access_name("store", storage_type(buffer.dtype))
            expressions.helpers.add(name)
            self.writer.line(f"{name}({pointer}, {place.text}, {stored.text});")
        else:
            self.writer.line(f"{pointer}[{place.text}] = {stored.text};")

    def _stored(self, value: Fragment, dtype: DType) -> Fragment:
        """A value as it lies in memory."""
        if not is_half(dtype):
            return value
        name = f"lp_f32_to_{model_name_of(dtype)}"
        self.expressions.helpers.add(name)
        return call(name, CType.I32, value)

    def is_independent(self, stmt: BufferStore) -> bool:
        """Whether no lane of the value or the index reads memory that the store may write."""
        loads = [load for part in (stmt.value, *stmt.indices) for load in loads_in(part)]
        target = self.expressions.memory.at(stmt.buffer)
        for load in loads:
            source = self.expressions.memory.at(load.buffer)
            if source == target or (not self.noalias and source.is_parameter and target.is_parameter):
                return False
        return True

    def evaluate(self, stmt: Evaluate) -> None:
        """An expression without an effect is dropped."""
        self.writer.line("/* nothing to do */")

    def attribute(self, stmt: AttrStmt) -> Writing:
        """An attribute has no effect in C."""
        yield stmt.body


def lane_of(lanes: int) -> Fragment:
    """The variable of a loop over lanes."""
    return Fragment(LANE, Binding.PRIMARY, CType.I32, Interval(0, lanes - 1))


def lane_loop(lanes: int) -> str:
    """The head of a loop over lanes."""
    return f"for (int32_t {LANE} = 0; {LANE} < {lanes}; ++{LANE})"


def describe(buffer: Buffer) -> str:
    """A buffer's type and shape for a comment: `float32 [16, n]`."""
    return f"{buffer.dtype} [{', '.join(describe_extent(extent) for extent in buffer.shape)}]"


def describe_extent(extent: Expr) -> str:
    """An extent for a comment: a number, or a C expression of the program's own names."""
    writer = Expressions(MemoryMap({}), Integers(CType.I64))
    for variable in free_variables(extent):
        writer.variables[variable.name] = Fragment(
            variable.name, Binding.PRIMARY, CType.I64, Interval(0, interval.INT32.high)
        )
        writer.index_names.add(variable.name)
    found = writer.emit_index(extent)
    return str(found.range.low) if found.range.low == found.range.high else found.text


EMITTERS: Mapping[type[Stmt], Callable[[Statements, Any], Writing | None]] = {
    For: Statements.loop,
    IfThenElse: Statements.branch,
    Let: Statements.let,
    BufferStore: Statements.store,
    Seq: Statements.sequence,
    Allocate: Statements.allocate,
    DeclBuffer: Statements.declare,
    Evaluate: Statements.evaluate,
    AttrStmt: Statements.attribute,
}
HANDLED = frozenset(EMITTERS)
