"""Statements as OpenCL C: as in C, with work items instead of parallel loops, and images written a texel at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from layoutproof.ir import interval
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import FLOAT32, DType
from layoutproof.ir.expr import IntImm, Ramp
from layoutproof.ir.interval import Interval
from layoutproof.ir.stmt import Allocate, BufferStore, For, ForKind, IfThenElse, Stmt
from layoutproof.ir.visit import free_variables, loads_in
from layoutproof.lowering.codegen import c_stmt, codes
from layoutproof.lowering.codegen.c_arithmetic import coerce
from layoutproof.lowering.codegen.c_expr import Mode
from layoutproof.lowering.codegen.c_stmt import (
    LANE,
    UNROLL_LIMIT,
    Statements,
    Writing,
    describe,
    lane_loop,
    lane_of,
    product_of,
)
from layoutproof.lowering.codegen.c_types import Binding, CType, Fragment, storage_type, value_type, variable_type
from layoutproof.lowering.codegen.calling_convention import Memory
from layoutproof.lowering.codegen.opencl.cl_expr import (
    VECTORS,
    OpenCLExpressions,
    channel_ctype,
    constant_lane,
    image_function,
)
from layoutproof.lowering.codegen.opencl.cl_helpers import Image
from layoutproof.lowering.codegen.opencl.cl_images import TEXEL, TEXTURE
from layoutproof.lowering.codegen.opencl.cl_lanes import (
    Gathered,
    at_lane,
    elements_in_a_row,
    gathered_stores,
    hoisted_guard,
    is_over_lanes,
    is_partial,
    lane_stores,
    partial_write,
    same_of_all,
    steps_by_one,
    store_at,
    whole_texel,
)
from layoutproof.lowering.codegen.opencl.cl_plan import WorkItems
from layoutproof.lowering.codegen.writer import comment

PRIVATE_BYTES = 1024  # an allocation of constant size up to this is the work item's own
PRIVATE_TOTAL = 8192  # all of them that are alive at one time
LANES_APART = 16  # more lanes than this are a loop

FENCE = "atomic_work_item_fence(CLK_IMAGE_MEM_FENCE, memory_order_acq_rel, memory_scope_work_item);"
# Kinds of storage that are computed with as they are stored, and so may be stored four at a time.
_WHOLE = {"float", "double", "int32_t", "int64_t", "uint32_t", "uint64_t"}


@dataclass(slots=True, kw_only=True)
class OpenCLStatements(Statements):
    """Writes the statements of one kernel.

    `both_ways` are the images, by data variable, that the kernel reads and writes. `new_temporary` names shared memory
    with one part per work item, for a buffer that each of them has.
    """

    work_items: WorkItems
    both_ways: frozenset[str]
    new_temporary: Callable[[Buffer], str]
    _gathered: list[tuple[Gathered, str, str]] = field(default_factory=list)

    @property
    def images(self) -> OpenCLExpressions:
        """The writer of expressions, which knows the images."""
        assert isinstance(self.expressions, OpenCLExpressions)
        return self.expressions

    def emitters(self) -> Mapping[type[Stmt], Callable[[Any, Any], Writing | None]]:
        """How each type of statement is written."""
        return _EMITTERS

    # --- loops

    def any_loop(self, stmt: For) -> None:
        """A work item's share of a loop; a loop over the lanes of a texel; any other as in C."""
        if self.work_items.counts(stmt):
            self._work_item(stmt)
            return
        image_of = self.images.image_of
        guard = hoisted_guard(stmt)
        if guard is not None and is_over_lanes(inner := replace(stmt, body=guard.then), image_of):
            self.branch(IfThenElse(guard.condition, inner))
            return
        gathered = gathered_stores(stmt, image_of)
        single = lane_stores(stmt, image_of)
        if gathered and isinstance(stmt.body, BufferStore):
            self._gather_values(stmt, gathered[0])
        elif gathered:
            self._gather_loop(stmt, gathered)
        elif single is not None:
            stores = [store_at(single, stmt.var, lane) for lane in range(TEXEL)]
            self._lanes_in_a_row(stores, steps_by_one(single.indices[-1], stmt.var))
        else:
            self._plain_loop(stmt)

    def _work_item(self, stmt: For) -> None:
        expressions = self.expressions
        begin, count = expressions.emit_index(stmt.start), expressions.emit_index(stmt.extent)
        expressions.integers.index_sum(begin, count)  # notes it where the last one may not fit
        inside = Interval(begin.range.low, max(begin.range.low, begin.range.high + count.range.high - 1))
        own = self.work_items.position(stmt, expressions)
        text = own if begin.range == interval.point(0) else f"{begin.at(Binding.SUM)} + {own}"
        name = self._bind(stmt, inside)
        self.writer.line(f"const {expressions.integers.index_type.value} {name} = {text};")
        self.emit(stmt.body)

    def _plain_loop(self, stmt: For) -> None:
        """A loop within one work item. Of the loop kinds, only unrolling has an effect."""
        begin, count = self._bound(stmt.start, "start"), self._bound(stmt.extent, "extent")
        integers = self.expressions.integers
        end = integers.index_sum(begin, count) if begin.range != interval.point(0) else count
        inside = Interval(begin.range.low, max(begin.range.low, begin.range.high + count.range.high - 1))
        self._unroll(stmt, count)
        with self.names.block():
            name = self._bind(stmt, inside)
            start = f"{integers.index_type.value} {name} = {begin.text}"
            self._body(f"for ({start}; {name} < {end.at(Binding.SHIFT)}; ++{name})", stmt.body)

    def _unroll(self, stmt: For, count: Fragment) -> None:
        if stmt.kind is ForKind.UNROLLED and count.range.is_point and 1 < count.range.low <= UNROLL_LIMIT:
            self.writer.line(f"#pragma unroll {count.range.low}")

    # --- memory

    def allocate_here(self, stmt: Allocate) -> Writing:
        """Memory of one work item: private if small and of constant size, else its part of shared memory."""
        buffer = stmt.buffer
        memory = self.expressions.memory.at(buffer)
        if buffer.scope == TEXTURE:
            message = (
                f"the OpenCL target has no texture for each work item: {buffer.name} is allocated inside of a kernel's "
                "loops"
            )
            help = "allocate it at the top of the function, or in scope 'local'"
            raise error(codes.UNSUPPORTED, message, buffer.span, help=help)
        elements = product_of(buffer.shape)
        size = elements * buffer.dtype.bytes if elements is not None else None
        too_large = size is None or size > PRIVATE_BYTES or self._on_stack + size > PRIVATE_TOTAL
        if memory.mixed or size is None or elements is None or too_large:
            yield from self._share(stmt, memory)
            return
        name = self.names.declare(buffer.name)
        self.expressions.pointers[buffer.data.name] = name
        self._on_stack += size
        self.writer.line(
            f"{memory.storage} {name}[{max(elements * buffer.dtype.lanes, 1)}]; {comment(describe(buffer))}"
        )
        yield stmt.body
        self._on_stack -= size

    def _share(self, stmt: Allocate, memory: Memory) -> Writing:
        buffer = stmt.buffer
        names = [v.name for extent in buffer.shape for v in free_variables(extent)]
        unknown = [name for name in names if name not in self.work_items.hosts]
        if unknown or any(True for extent in buffer.shape for _ in loads_in(extent)):
            reason = f"its extent depends on {unknown[0]}" if unknown else "its extent is read from memory"
            message = (
                f"the OpenCL target cannot allocate {buffer.name} inside of a kernel: {reason}, which the host does "
                "not know"
            )
            help = "give it a constant extent, or allocate it around the parallel loops"
            raise error(codes.UNSUPPORTED, message, buffer.span, help=help)
        everything = self.new_temporary(buffer)
        if not self.work_items.grid:
            self.expressions.pointers[buffer.data.name] = everything
            yield stmt.body
            return
        self.expressions.helpers.add("lp_work_item")
        name = self.names.declare(buffer.name)
        self.expressions.pointers[buffer.data.name] = name
        count = self.element_count(buffer)
        pointer = f"__global {memory.storage} *const {name}"
        start = f"{everything} + (int64_t)lp_work_item() * {count.at(Binding.UNARY)}"
        self.writer.line(f"{pointer} = {start}; {comment(describe(buffer))}")
        yield stmt.body

    # --- stores

    def any_store(self, stmt: BufferStore) -> None:
        """One element, lanes one after the other, whole texels, or a lane of a texel that is being gathered."""
        for gathered, array, lane in self._gathered:
            if gathered.store is stmt:
                channel = self._channel(self.expressions.emit(stmt.value), gathered.image)
                self.writer.line(f"{array}[{lane}] = {channel};")
                return
        image = self.images.image_of(stmt)
        if image is not None and image.channels == TEXEL:
            self._store_texels(stmt, image)
            return
        lanes = stmt.value.dtype.lanes
        if lanes == 1:
            self._store_lane(stmt, None, self.expressions.emit(stmt.value))
        elif lanes == TEXEL and self._is_row(stmt):
            self._write_lanes(stmt, lanes)
        elif self.is_independent(stmt):
            if lanes <= LANES_APART and (self._reads_texels(stmt) or self._is_row(stmt)):
                self._write_lanes(stmt, lanes)
                return
            with self.writer.nested(lane_loop(lanes)):
                each = lane_of(lanes)
                self._store_lane(stmt, each, self.expressions.emit(stmt.value, Mode(lane=each)))
        else:
            self._store_collected(stmt, lanes)

    def _fill_lanes(self, name: str, value: Any) -> None:
        dtype: DType = value.dtype
        self.writer.line(f"{variable_type(dtype.element)} {name}[{dtype.lanes}];")
        with self.writer.nested(lane_loop(dtype.lanes)):
            self.writer.line(f"{name}[{LANE}] = {self.expressions.emit(value, Mode(lane=lane_of(dtype.lanes))).text};")

    def _store_lane(
        self, stmt: BufferStore, lane: Fragment | None, value: Fragment, address: Fragment | None = None
    ) -> None:
        image = self.images.image_of(stmt)
        if image is None:
            Statements._store_lane(self, stmt, lane, value, address)
            return
        if address is not None:
            message = f"the OpenCL target cannot store to {stmt.buffer.name} where its own content says"
            raise error(codes.UNSUPPORTED, message, stmt.span)
        zero = Fragment("0", Binding.PRIMARY, CType.I32)
        texel = self._joined([self._channel(value, image), *[zero.text] * (TEXEL - 1)], image.buffer.dtype)
        self._write_texel(stmt, self.images.place(stmt, image, lane).coordinates, texel)

    def _reads_texels(self, stmt: BufferStore) -> bool:
        images = (self.images.image_of(load) for load in loads_in(stmt.value))
        return any(image is not None and image.channels == TEXEL for image in images)

    def _write_lanes(self, stmt: BufferStore, lanes: int) -> None:
        """Each lane by itself, or four at a time where memory allows it; each texel is read once."""
        with self._texels():
            values = [self.expressions.emit(stmt.value, Mode(lane=constant_lane(lane))) for lane in range(lanes)]
            places = [self.expressions.address(stmt, constant_lane(lane)) for lane in range(lanes)]
            self._write_row(stmt, values, places, self._is_row(stmt))

    def _write_row(
        self, stmt: BufferStore, values: Sequence[Fragment], places: Sequence[Fragment], together: bool
    ) -> None:
        if not together:
            for lane, value in enumerate(values):
                self._store_lane(stmt, constant_lane(lane), value)
            return
        pointer = self.expressions.pointers[stmt.buffer.data.name]
        for first in range(0, len(values), TEXEL):
            ctype = value_type(stmt.buffer.dtype.element)
            lanes = [coerce(value, ctype).text for value in values[first : first + TEXEL]]
            place = places[first]
            start = pointer if place.range == interval.point(0) else f"{pointer} + {place.at(Binding.PRODUCT)}"
            self.writer.line(f"vstore4({self._joined(lanes, stmt.buffer.dtype)}, 0, {start});")

    def _takes_vectors(self, stmt: BufferStore) -> bool:
        memory = self.expressions.memory.at(stmt.buffer)
        return self.images.image_of(stmt) is None and not memory.mixed and storage_type(stmt.buffer.dtype) in _WHOLE

    def _is_row(self, stmt: BufferStore) -> bool:
        """Whether it stores consecutive elements, four at a time."""
        index, lanes = stmt.indices[-1], stmt.value.dtype.lanes
        steps = isinstance(index, Ramp) and isinstance(index.stride, IntImm) and index.stride.value == 1
        return (steps or stmt.buffer.dtype.lanes == lanes) and lanes % TEXEL == 0 and self._takes_vectors(stmt)

    def _may_wait(self, stmt: BufferStore) -> bool:
        """Whether neighbouring stores like this one may be delayed: none reads what another one stores."""
        target = self.expressions.memory.at(stmt.buffer)
        for load in (load for part in (stmt.value, *stmt.indices) for load in loads_in(part)):
            source = self.expressions.memory.at(load.buffer)
            own = load.buffer == stmt.buffer and load.indices == stmt.indices
            overlapping = not self.noalias and source.is_parameter and target.is_parameter
            if not own and (source == target or overlapping):
                return False
        return True

    def _lanes_in_a_row(self, stores: Sequence[BufferStore], together: bool) -> None:
        """The unrolled iterations of a loop of stores to plain memory."""
        with self._texels():
            if together and self._takes_vectors(stores[0]) and all(self._may_wait(store) for store in stores):
                values = [self.expressions.emit(store.value) for store in stores]
                self._write_row(stores[0], values, [self.expressions.address(store, None) for store in stores], True)
                return
            for store in stores:
                self._store_lane(store, None, self.expressions.emit(store.value))

    # --- texels

    def _store_texels(self, stmt: BufferStore, image: Image) -> None:
        """Whole texels, all computed before the first is written."""
        if is_partial(stmt, image):
            raise partial_write(stmt, "a single element, by a statement that is in no loop over all four")
        lanes = stmt.value.dtype.lanes
        with self._texels():
            places = [self.images.place(stmt, image, constant_lane(lane)) for lane in range(lanes)]
            for first in range(0, lanes, TEXEL):
                texel = places[first : first + TEXEL]
                channels = [place.channel.range for place in texel]
                whole = channels == [interval.point(channel) for channel in range(TEXEL)]
                if not whole or len({place.coordinates for place in texel}) > 1:
                    raise partial_write(stmt, f"its {lanes} lanes cross texels, or are not shown to begin with one")
            values = [
                self._channel(self.expressions.emit(stmt.value, Mode(lane=constant_lane(lane))), image)
                for lane in range(lanes)
            ]
            texels = [
                self._joined(values[first : first + TEXEL], image.buffer.dtype) for first in range(0, lanes, TEXEL)
            ]
            if len(texels) > 1 and any(self.images.image_of(load) == image for load in loads_in(stmt)):
                pointer = self.expressions.pointers[stmt.buffer.data.name]
                texels = [self._declare_texel(text, pointer) for text in texels]
            for position, text in enumerate(texels):
                self._write_texel(stmt, places[position * TEXEL].coordinates, text)

    def _gather_values(self, stmt: For, gathered: Gathered) -> None:
        """A loop over lanes that is one store: its four values, written out."""
        store, image = gathered.store, gathered.image
        with self._texels():
            lanes = [
                self._channel(self.expressions.emit(at_lane(store.value, stmt.var, lane)), image)
                for lane in range(TEXEL)
            ]
            place = self.images.place(store_at(store, stmt.var, 0), image, None)
            self._write_texel(store, place.coordinates, self._joined(lanes, image.buffer.dtype))

    def _gather_loop(self, stmt: For, gathered: Sequence[Gathered]) -> None:
        """A larger loop over lanes: its stores go to arrays, which are written as texels after the loop."""
        arrays: list[str] = []
        for one in gathered:
            name = self.names.declare(f"{self.expressions.pointers[one.store.buffer.data.name]}_lanes")
            self.writer.line(f"{channel_ctype(one.image.buffer.dtype).value} {name}[{TEXEL}];")
            arrays.append(name)
        with self.names.block():
            lane = self._bind(stmt, Interval(0, TEXEL - 1))
            kept = list(self._gathered)
            self._gathered += [(one, array, lane) for one, array in zip(gathered, arrays, strict=True)]
            ctype = self.expressions.integers.index_type.value
            self._unroll(stmt, constant_lane(TEXEL))
            self._body(f"for ({ctype} {lane} = 0; {lane} < {TEXEL}; ++{lane})", stmt.body)
            self._gathered = kept
        for one, array in zip(gathered, arrays, strict=True):
            place = self.images.place(store_at(one.store, stmt.var, 0), one.image, None)
            texel = self._joined([f"{array}[{lane}]" for lane in range(TEXEL)], one.image.buffer.dtype)
            self._write_texel(one.store, place.coordinates, texel)

    def _write_texel(self, stmt: BufferStore, coordinates: str, texel: str) -> None:
        buffer = stmt.buffer
        memory = self.expressions.memory.at(buffer)
        name = image_function("write", buffer.dtype)
        self.writer.line(f"{name}({self.expressions.pointers[buffer.data.name]}, {coordinates}, {texel});")
        if memory.buffer.data.name in self.both_ways:
            self.writer.line(FENCE)

    def _joined(self, lanes: Sequence[str], dtype: DType) -> str:
        """Four values as one: a texel that was read, four consecutive elements, vector arithmetic, or `(float4)(a, b,
        c, d)`.
        """

        def is_pointer(name: str) -> bool:
            return self._storage_at(name) in _WHOLE & {storage_type(dtype)}

        found = whole_texel(lanes) or elements_in_a_row(lanes, is_pointer)
        if found is None and dtype.element == FLOAT32:
            found = same_of_all(lanes, is_pointer)
        if found is not None:
            return found
        kind = _vector_type(dtype)
        return f"({kind})({lanes[0]})" if len(set(lanes)) == 1 else f"({kind})({', '.join(lanes)})"

    def _storage_at(self, pointer: str) -> str | None:
        """The storage type behind a pointer of the kernel."""
        memory, pointers = self.expressions.memory.by_data, self.expressions.pointers
        found = (memory[data] for data, name in pointers.items() if name == pointer and data in memory)
        return next((each.storage for each in found), None)

    def _channel(self, value: Fragment, image: Image) -> str:
        return coerce(value, channel_ctype(image.buffer.dtype)).text

    @contextmanager
    def _texels(self) -> Iterator[None]:
        """Inside, each texel is read once, into a variable."""
        images = self.images
        images.texels, images.name_texel = {}, self._named
        yield
        images.texels = images.name_texel = None

    def _named(self, kind: str, buffer: str, text: str) -> str:
        name = self.names.declare(f"{buffer}_texel")
        self.writer.line(f"const {kind} {name} = {text};")
        return name

    def _declare_texel(self, text: str, buffer: str) -> str:
        if not text.startswith("("):
            return text  # a texel that was read, by its name
        return self._named(text[1 : text.index(")")], buffer, text)


def _vector_type(dtype: DType) -> str:
    """The type in which four lanes are computed."""
    element = dtype.element
    return VECTORS[channel_ctype(element) if element.bits < 32 else value_type(element)]


_EMITTERS: Mapping[type[Stmt], Callable[[Any, Any], Writing | None]] = {
    **c_stmt.EMITTERS,
    For: OpenCLStatements.any_loop,
    Allocate: OpenCLStatements.allocate_here,
    BufferStore: OpenCLStatements.any_store,
}
