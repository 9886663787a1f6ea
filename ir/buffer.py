"""Buffers: the compile-time view of a block of memory, and the load of an element.

Two buffers alias when they share `data`. A buffer does not carry its padding contract; the program's text does.

Sources: TVM's RFCs `clarifying-buffer-declaration-and-access`, `buffer-physical-layout`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from layoutproof.ir.diagnostic import counted
from layoutproof.ir.dtype import HANDLE, DType
from layoutproof.ir.expr import Expr, ExprLike, IntImm, Var, const, require
from layoutproof.ir.node import Node


@dataclass(frozen=True, slots=True, eq=False)
class Buffer(Node):
    """A view of memory.

    `shape` counts elements of `dtype` (which may have lanes); `strides`, where given, are in elements, one an axis;
    else the layout is row-major. `elem_offset` counts elements from the start of `data`. `axis_separators` are indices
    of the last axis of each axis group but the last, increasing. `align` is the promised alignment of `data` in bytes
    (0: the target's default).
    """

    name: str
    dtype: DType
    shape: tuple[Expr, ...]
    data: Var
    strides: tuple[Expr, ...] = ()
    elem_offset: Expr = IntImm(0)
    scope: str = "global"
    axis_separators: tuple[int, ...] = ()
    align: int = 0
    offset_factor: int = 0

    def _check(self) -> None:
        require(self.data.dtype == HANDLE, f"the data variable of {self.name} is a {self.data.dtype}")
        same = len(self.strides) == len(self.shape)
        require(
            not self.strides or same, f"{self.name} has {axes_text(len(self.shape))} and {len(self.strides)} strides"
        )
        for extent in (*self.shape, *self.strides, self.elem_offset):
            require(
                extent.dtype.is_integer and extent.dtype.lanes == 1,
                f"a shape, stride or offset of {self.name} is a {extent.dtype}",
            )
        check_separators(self.axis_separators, len(self.shape))

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The axes of each group that flattening makes one physical axis."""
        return axis_groups(self.rank, self.axis_separators)


def check_separators(separators: tuple[int, ...], rank: int) -> None:
    """Raise ValueError unless `separators` increase and each leaves an axis on both sides."""
    if any(b <= a for a, b in pairwise(separators)):
        raise ValueError(f"axis separators {list(separators)} do not increase")
    if separators and not (separators[0] >= 0 and separators[-1] < rank - 1):
        outside = f"axis separators {list(separators)} are out of range for {axes_text(rank)}"
        raise ValueError(f"{outside}: each names an axis before the last")


def axis_groups(rank: int, separators: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """The axes of each group: separators `(2,)` of rank 5 give `((0, 1, 2), (3, 4))`; one group without any."""
    starts = (0, *(s + 1 for s in separators))
    ends = (*(s + 1 for s in separators), rank)
    return tuple(tuple(range(a, b)) for a, b in zip(starts, ends, strict=True))


def make_buffer(
    name: str, shape: tuple[ExprLike, ...], dtype: str | DType, *, data: Var | None = None, scope: str = "global"
) -> Buffer:
    """A plain row-major buffer; its data variable is `name` with `_data` behind it unless one is given."""
    extents = tuple(s if isinstance(s, Expr) else const(s) for s in shape)
    element = DType.parse(dtype) if isinstance(dtype, str) else dtype
    return Buffer(name, element, extents, data if data is not None else Var(f"{name}_data", HANDLE), scope=scope)


@dataclass(frozen=True, slots=True, eq=False)
class BufferLoad(Expr):
    """The element (or, by a vector index in the last place, elements) of a buffer."""

    buffer: Buffer
    indices: tuple[Expr, ...]

    def _check(self) -> None:
        check_indices(self.buffer, self.indices)

    @property
    def dtype(self) -> DType:
        """The element type with (lanes of the element) x (lanes of the index) lanes."""
        return access_type(self.buffer, self.indices)


def axes_text(number: int) -> str:
    """`1 axis`, `2 axes`."""
    return counted(number, "axis", "axes")


def check_indices(buffer: Buffer, indices: tuple[Expr, ...]) -> None:
    """Raise TypeError unless `indices` can index `buffer`: one integer each, lanes in the last only."""
    if len(indices) != len(buffer.shape):
        raise TypeError(f"{buffer.name} has {axes_text(buffer.rank)} and is indexed by {len(indices)}")
    for axis, index in enumerate(indices):
        if not index.dtype.is_integer:
            raise TypeError(f"index {axis} of {buffer.name} is a {index.dtype}")
        if index.dtype.lanes != 1 and axis != len(indices) - 1:
            raise TypeError(f"index {axis} of {buffer.name} has lanes; only the last one may")


def access_type(buffer: Buffer, indices: tuple[Expr, ...]) -> DType:
    """The type of what is loaded from, or stored to, `buffer[indices]`."""
    lanes = indices[-1].dtype.lanes if indices else 1
    return buffer.dtype.with_lanes(buffer.dtype.lanes * lanes)


@dataclass(frozen=True, slots=True, eq=False)
class Range(Node):
    """`extent` integers from `start`."""

    start: Expr
    extent: Expr


@dataclass(frozen=True, slots=True, eq=False)
class BufferRegion(Node):
    """A box of a buffer: what a block says it reads or writes."""

    buffer: Buffer
    ranges: tuple[Range, ...]

    @staticmethod
    def cell(buffer: Buffer, indices: Sequence[Expr]) -> BufferRegion:
        """The region of one cell."""
        return BufferRegion(buffer, tuple(Range(index, const(1, index.dtype)) for index in indices))

    def _check(self) -> None:
        require(
            len(self.ranges) == self.buffer.rank,
            f"{self.buffer.name} has {axes_text(self.buffer.rank)}, its region {len(self.ranges)}",
        )
