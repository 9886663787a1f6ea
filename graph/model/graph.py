"""The graph: a directed acyclic graph of calls to `PrimFunc`s, inputs, constants, outputs, and the operators
`layout_transform`, `pad` and `crop`, with steps in an order in which they can run; the signature of a function.

Source: Relax's issue `relax-layout-transformation`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import copysign, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutproof.graph import codes
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError, Span, counted, error
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Expr, FloatImm, IntImm, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.interval import Interval
from layoutproof.ir.intrinsics import OpaqueCall, Undef
from layoutproof.ir.primfunc import Kept, PrimFunc
from layoutproof.ir.shown import Shown
from layoutproof.ir.stmt import DeclBuffer, MatchBuffer
from layoutproof.ir.visit import holds_any, walk
from layoutproof.ir.wellformed import check_wellformed
from layoutproof.lowering.passes.effects import data_written

Array = NDArray[Any]
Shape = tuple[int, ...]

FROZEN = "layoutproof.frozen"
"""The attribute of a function whose operands and results keep their layouts, whatever is planned."""


@dataclass(frozen=True, slots=True)
class Value:
    """What flows along edges: a name of its own, a shape in elements, a data type."""

    name: str
    shape: Shape
    dtype: DType

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A value known at compile time. `data` has the value's shape and type, and must not be changed. Compared by its
    bits.

    Where only the digest of the elements is known, that is `sha256`, and `data` holds zeros: nothing can be run with
    it.
    """

    value: Value
    data: Array
    span: Span | None = None
    sha256: str | None = None

    @property
    def digest(self) -> str:
        """The SHA-256 of the elements in row-major order, in hexadecimal."""
        if self.sha256 is not None:
            return self.sha256
        return hashlib.sha256(np.ascontiguousarray(self.data).tobytes()).hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant):
            return NotImplemented
        return self.value == other.value and (self.data is other.data or self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.value)


@dataclass(frozen=True, slots=True)
class Call:
    """`function` on `operands` (names, for parameters that it only reads) makes `results` (for those it writes)."""

    results: tuple[Value, ...]
    function: PrimFunc
    operands: tuple[str, ...]
    span: Span | None = field(default=None, compare=False)


class _Moving:
    """What moves the elements of one value."""

    __slots__ = ()
    result: Value
    operand: str

    @property
    def results(self) -> tuple[Value, ...]:
        """The one result."""
        return (self.result,)

    @property
    def operands(self) -> tuple[str, ...]:
        """The one operand."""
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class LayoutTransform(_Moving):
    """The element at `x` of the operand becomes the one at `index_map(x)`: a bijection between the two boxes."""

    result: Value
    operand: str
    index_map: IndexMap
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Pad(_Moving):
    """The operand with `widths[axis] = (before, after)` more cells of `value`, a constant or undef, on each axis."""

    result: Value
    operand: str
    widths: tuple[tuple[int, int], ...]
    value: Expr
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Crop(_Moving):
    """The box of `sizes` from `starts`. `cropped_value`, if given, is a claim about the cells that are cut off."""

    result: Value
    operand: str
    starts: Shape
    sizes: Shape
    cropped_value: Expr | None = None
    span: Span | None = field(default=None, compare=False)


Rewriting = LayoutTransform | Pad | Crop
Step = Call | LayoutTransform | Pad | Crop


@dataclass(frozen=True)
class Graph(Shown):
    """Inputs and constants, steps in an order in which they can run, and the names of the outputs.

    `outputs` may name a value more than once, and inputs and constants too. A graph may be malformed until
    `require_graph` says otherwise.
    """

    name: str
    inputs: tuple[Value, ...]
    constants: tuple[Constant, ...]
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]
    span: Span | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return f"<graph {self.name}: {counted(len(self.steps), 'step', 'steps')}>"

    def values(self) -> Iterator[Value]:
        """Every value: inputs, constants, results in the order of the steps."""
        yield from self.inputs
        yield from (constant.value for constant in self.constants)
        for step in self.steps:
            yield from step.results

    def by_name(self) -> Mapping[str, Value]:
        """The values by their names."""
        return self._by_name

    @cached_property
    def _by_name(self) -> Mapping[str, Value]:
        return {value.name: value for value in self.values()}

    def producers(self) -> Mapping[str, Step]:
        """The step that makes each value; inputs and constants have none."""
        return self._producers

    @cached_property
    def _producers(self) -> Mapping[str, Step]:
        return {value.name: step for step in self.steps for value in step.results}

    def consumers(self) -> Mapping[str, tuple[Step, ...]]:
        """The steps that use each value, in order, each once."""
        found: dict[str, list[Step]] = {value.name: [] for value in self.values()}
        for step in self.steps:
            for name in dict.fromkeys(step.operands):
                found[name].append(step)
        return {name: tuple(steps) for name, steps in found.items()}

    def functions(self) -> tuple[PrimFunc, ...]:
        """The distinct functions that are called, in the order of their first calls."""
        return tuple(dict.fromkeys(step.function for step in self.steps if isinstance(step, Call)))

    @property
    def rewrites(self) -> tuple[Rewriting, ...]:
        """The layout operators."""
        return tuple(step for step in self.steps if not isinstance(step, Call))


_OUTSIDE: Kept[bool] = Kept(4096)


def reaches_outside(func: PrimFunc) -> bool:
    """Whether a function makes opaque calls, which have an effect even if no result is used."""
    return _OUTSIDE.get(func, (), lambda: holds_any(func.body, OpaqueCall))


_LARGEST = 1 << 1023


def is_scalar(value: Expr, dtype: DType) -> bool:
    """Whether the expression is one number of the type, or undef of it."""
    return isinstance(value, IntImm | FloatImm | Undef) and value.dtype == dtype


def number_of(value: Expr) -> int | float | None:
    """The number; None for undef."""
    return value.value if isinstance(value, IntImm | FloatImm) else None


def scalar(value: bool | int | float | Expr | None, dtype: DType) -> Expr:
    """A number as a constant of the type, an expression as itself; None is undef.

    Raises LayoutproofError for a number the type has not.
    """
    if isinstance(value, Expr):
        return value
    if value is None:
        return Undef(dtype)
    try:
        return const(
            float(value) if dtype.is_float else bool(value) if dtype.is_bool and value in (0, 1) else value, dtype
        )
    except (TypeError, ValueError, OverflowError) as problem:
        raise error(codes.PAD_SCALAR, f"{value!r} is no number of type {dtype}: {problem}") from problem


def number_in(value: int | float, dtype: DType) -> int | float | None:
    """A number as a type has it, a float or an integer; None where it has not just this one."""
    if dtype.is_float:
        made = number_of(scalar(value, dtype)) if abs(value) == inf or abs(value) <= _LARGEST else None
        return float(value) if made == value else None
    if isinstance(value, float) and (not value.is_integer() or (value == 0 and copysign(1.0, value) < 0)):
        return None
    return int(value) if Interval(int(value), int(value)).fits(dtype) else None


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a function that are only read (`operands`) and those that are written (`results`), in order."""

    operands: tuple[Buffer, ...]
    results: tuple[Buffer, ...]


_SIGNATURES: Kept[Signature] = Kept(4096)


def signature_of(func: PrimFunc) -> Signature:
    """The function's arrays, in their roles. Raises LayoutproofError where a graph cannot call the function."""
    return _SIGNATURES.get(func, (), lambda: _read(func))


def shape_of(buffer: Buffer) -> Shape:
    """The extents as numbers. Raises ValueError for a symbolic one."""
    extents = [extent.value for extent in buffer.shape if isinstance(extent, IntImm)]
    if len(extents) != buffer.rank:
        raise ValueError(f"{buffer.name} has an extent that is not a number")
    return tuple(extents)


def is_whole(buffer: Buffer) -> bool:
    """Whether a buffer is an array like those of a graph: all of its memory, element by element."""
    return not buffer.strides and buffer.elem_offset == IntImm(0, buffer.elem_offset.dtype) and buffer.dtype.lanes == 1


def is_frozen(func: PrimFunc) -> bool:
    """Whether the layouts of the function's arrays must stay as they are."""
    return func.attrs.get(FROZEN) in (True, 1)


def frozen(func: PrimFunc) -> PrimFunc:
    """The function, marked as one whose layouts must stay."""
    return replace(func, attrs=func.attrs.with_value(FROZEN, True))


def _read(func: PrimFunc) -> Signature:
    found = list(check_wellformed(func)) or list(_unfit(func))
    if found:
        raise LayoutproofError(found)
    written = data_written(func.body)
    operands = tuple(buffer for buffer in func.buffers if buffer.data not in written)
    results = tuple(buffer for buffer in func.buffers if buffer.data in written)
    if not results:
        raise LayoutproofError(_form(func, "writes none of its parameters, so a call of it makes nothing"))
    return Signature(operands, results)


def _unfit(func: PrimFunc) -> list[Diagnostic]:
    found = list[Diagnostic]()
    mapped = dict(func.buffer_map)
    for param in func.params:
        buffer = mapped.get(param)
        if buffer is None:
            found.append(_form(func, f"has the parameter {param.name}, which is no array"))
        elif not all(isinstance(extent, IntImm) for extent in buffer.shape):
            found.append(_form(func, f"has the parameter {buffer.name}, whose extents are not all numbers", buffer))
        elif not is_whole(buffer):
            found.append(_form(func, f"has the parameter {buffer.name}, which has strides, an offset or lanes", buffer))
    # What goes through a view is not seen by those who ask who reads and writes a parameter.
    arrays = {buffer.data: buffer for buffer in func.buffers}
    for node in walk(func.body):
        source = (
            node.buffer
            if isinstance(node, DeclBuffer)
            else node.source.buffer
            if isinstance(node, MatchBuffer)
            else None
        )
        if source is not None and source.data in arrays:
            found.append(_form(func, f"has a view of the parameter {arrays[source.data].name}", source))
    return found


def _form(func: PrimFunc, what: str, buffer: Buffer | None = None) -> Diagnostic:
    place = buffer.span if buffer is not None and buffer.span is not None else func.span
    return Diagnostic(
        codes.FUNCTION_FORM, f"the function {func.name} {what}", place, help="a graph calls functions over whole arrays"
    )
