"""Expressions as OpenCL C text: as in C, and reads of images.

A texel of four channels is read whole. Where the lanes of one statement are written separately, its texels are first
read into variables, each once: `texels` holds them by their text. What is evaluated under a condition is read under it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from layoutproof.ir import interval
from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import DType, Kind
from layoutproof.ir.expr import Expr, IfThenElseExpr, Logical, Ramp
from layoutproof.ir.interval import Interval
from layoutproof.ir.stmt import BufferStore
from layoutproof.lowering.codegen import c_expr
from layoutproof.lowering.codegen.c_expr import Expressions, Mode
from layoutproof.lowering.codegen.c_types import Binding, CType, Fragment, call, choice, convert, operation, value_type
from layoutproof.lowering.codegen.opencl.cl_helpers import Image
from layoutproof.lowering.codegen.opencl.cl_images import TEXEL, split_row
from layoutproof.lowering.codegen.opencl.cl_lanes import CHANNELS

VECTORS = {
    CType.F32: "float4",
    CType.I32: "int4",
    CType.U32: "uint4",
    CType.I64: "long4",
    CType.U64: "ulong4",
    CType.F64: "double4",
}
_SUFFIX = {CType.F32: "f32", CType.I32: "i32", CType.U32: "u32"}


def channel_ctype(dtype: DType) -> CType:
    """The type of a channel as a kernel reads and writes it."""
    if dtype.is_float:
        return CType.F32
    return CType.U32 if dtype.kind is Kind.UINT else CType.I32


def image_function(action: str, dtype: DType) -> str:
    """`read_imagef`, `write_imagei`, ...: by the type of the channels. Halves are exact floats there."""
    return f"{action}_image{ {CType.F32: 'f', CType.I32: 'i', CType.U32: 'ui'}[channel_ctype(dtype)] }"


@dataclass(frozen=True, slots=True)
class Place:
    """The position of an element in an image: the texel's coordinates as an expression, and the channel."""

    coordinates: str
    channel: Fragment


def constant_lane(lane: int) -> Fragment:
    """One lane by its number."""
    return Fragment(str(lane), Binding.PRIMARY, CType.I32, interval.point(lane))


@dataclass(slots=True)
class OpenCLExpressions(Expressions):
    """Writes expressions. `images` are those of the kernel by the data variable that declares them."""

    images: Mapping[str, Image] = field(default_factory=dict)
    texels: dict[str, str] | None = None
    name_texel: Callable[[str, str, str], str] | None = None
    _conditions: list[str | None] = field(default_factory=list)  # None: one that is not written ahead

    def emitters(self) -> Mapping[type[Expr], Callable[[Any, Any, Mode], Fragment]]:
        """How each type of expression is written."""
        return _EMITTERS

    def image_of(self, access: BufferLoad | BufferStore) -> Image | None:
        """The image that an access goes to; None for plain memory."""
        memory = self.memory.at(access.buffer)
        return self.images.get(memory.buffer.data.name)

    def load(self, expr: BufferLoad, mode: Mode) -> Fragment:
        """One lane of a load: of plain memory, or a channel of a texel."""
        image = self.image_of(expr)
        if image is None:
            return Expressions.load(self, expr, mode)
        dtype, ctype = expr.buffer.dtype.element, channel_ctype(expr.buffer.dtype)
        place = self.place(expr, image, mode.lane)
        pointer = self.pointers[expr.buffer.data.name]
        texel = self._texel(f"{image_function('read', dtype)}({pointer}, {place.coordinates})", expr.buffer)
        values = None if dtype.is_float else interval.of_type(dtype)
        channel = place.channel.range
        if channel.is_point:
            found = Fragment(f"{texel}.{CHANNELS[channel.low]}", Binding.PRIMARY, ctype, values)
        else:
            name = f"lp_channel_{_SUFFIX[ctype]}"
            self.helpers.add(name)
            found = call(name, ctype, Fragment(texel, Binding.PRIMARY, ctype), place.channel, values=values)
        return convert(found, value_type(dtype))

    def _texel(self, text: str, buffer: Buffer) -> str:
        if self.texels is None or self.name_texel is None or None in self._conditions:
            return text
        kind = VECTORS[channel_ctype(buffer.dtype)]
        conditions = " && ".join(condition for condition in self._conditions if condition is not None)
        whole = f"{conditions} ? {text} : ({kind})(0)" if conditions else text
        if whole not in self.texels:
            self.texels[whole] = self.name_texel(kind, self.pointers[buffer.data.name], whole)
        return self.texels[whole]

    def choose_lazily(self, expr: IfThenElseExpr, mode: Mode) -> Fragment:
        """A choice that evaluates one side: what a side reads is read under its condition."""
        condition = self.emit(expr.condition, mode if expr.condition.dtype.lanes > 1 else mode.scalar)
        then = self._under(condition.at(Binding.EQUAL), expr.then, mode)
        otherwise = self._under(f"!({condition.text})", expr.otherwise, mode)
        if not expr.dtype.is_float:
            then, otherwise = self.integers.alike(then, otherwise, expr.dtype)
        return choice(condition, then, otherwise)

    def _under(self, condition: str | None, expr: Expr, mode: Mode) -> Fragment:
        self._conditions.append(condition)
        found = self.emit(expr, mode)
        self._conditions.pop()
        return found

    def connect(self, expr: Logical, mode: Mode) -> Fragment:
        """`and`, `or`: nothing is read ahead, since the right side may not be evaluated."""
        self._conditions.append(None)
        found = self.logical(expr, mode)
        self._conditions.pop()
        return found

    # --- places in images

    def place(self, access: BufferLoad | BufferStore, image: Image, lane: Fragment | None) -> Place:
        """The position of one lane of a load or a store. `lane` counts single lanes of the access."""
        *outer, row = access.indices
        if access.buffer.dtype.lanes == TEXEL:
            assert lane is not None
            position, channel = self._vector_position(row, lane)
        elif image.channels == TEXEL:
            position, channel = self._row_position(row, lane)
        else:
            position, channel = self.emit_index(row, lane), constant_lane(0)
        rows = [self.emit_index(index) for index in outer]
        return Place(_coordinates([position, *reversed(rows)]), channel)

    def _vector_position(self, row: Expr, lane: Fragment) -> tuple[Fragment, Fragment]:
        if row.dtype.lanes == 1:
            return self.emit_index(row), lane
        if lane.range.is_point:
            return self.emit_index(row, constant_lane(lane.range.low // TEXEL)), constant_lane(lane.range.low % TEXEL)
        element = operation("/", Binding.PRODUCT, lane, constant_lane(TEXEL))
        outer = Fragment(element, Binding.PRODUCT, CType.I32, Interval(0, row.dtype.lanes - 1))
        return self.emit_index(row, outer), _remainder(lane)

    def _row_position(self, row: Expr, lane: Fragment | None) -> tuple[Fragment, Fragment]:
        """The texel and the channel of an element of a row: separated if the index is `4 * texel + channel`, else by a
        division.
        """
        one = constant_lane(1).range
        if isinstance(row, Ramp):
            assert lane is not None
            whole, rest = split_row(row.base)
            inner = self.emit_index(rest)
            step = self.emit_index(row.stride)
            if step.range == one and inner.range == interval.point(0):
                texel = self.emit_index(whole)
                if lane.range.within(_CHANNEL_RANGE):
                    return texel, lane
                if lane.range.is_point:
                    return self._stepped(texel, lane.range.low // TEXEL), constant_lane(lane.range.low % TEXEL)
            return self._divided(self.emit_index(row, lane))
        if row.dtype.lanes > 1:
            return self._divided(self.emit_index(row, lane))
        whole, rest = split_row(row)
        channel = self.emit_index(rest)
        if channel.range.within(_CHANNEL_RANGE):
            return self.emit_index(whole), channel
        return self._divided(self.emit_index(row))

    def _stepped(self, texel: Fragment, step: int) -> Fragment:
        if texel.range.is_point:
            return constant_lane(texel.range.low + step)
        return texel if step == 0 else self.integers.index_sum(texel, constant_lane(step))

    def _divided(self, index: Fragment) -> tuple[Fragment, Fragment]:
        if index.range.is_point:
            return constant_lane(index.range.low // TEXEL), constant_lane(index.range.low % TEXEL)
        values = Interval(0, max(index.range.high, 0) // TEXEL)  # an index is not negative: that was proved
        texel = operation("/", Binding.PRODUCT, index, constant_lane(TEXEL))
        return Fragment(texel, Binding.PRODUCT, index.ctype, values), _remainder(index)


_CHANNEL_RANGE = Interval(0, TEXEL - 1)


def _remainder(index: Fragment) -> Fragment:
    four = constant_lane(TEXEL)
    found = Fragment(operation("%", Binding.PRODUCT, index, four), Binding.PRODUCT, index.ctype, _CHANNEL_RANGE)
    return convert(found, CType.I32)


def _coordinates(parts: list[Fragment]) -> str:
    """`(int2)(x, y)`, or `(int4)(x, y, layer, 0)`."""
    texts = [convert(part, CType.I32).text for part in parts]
    return f"(int2)({', '.join(texts)})" if len(texts) == 2 else f"(int4)({', '.join(texts)}, 0)"


_EMITTERS: Mapping[type[Expr], Callable[[Any, Any, Mode], Fragment]] = {
    **c_expr.EMITTERS,
    BufferLoad: OpenCLExpressions.load,
    IfThenElseExpr: OpenCLExpressions.choose_lazily,
    Logical: OpenCLExpressions.connect,
}
