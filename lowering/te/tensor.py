"""Tensors, axes and reductions of a compute definition.

They are expressions that occur only in definitions: `create_prim_func` turns them into loads, block variables and
inits. Source: TVM's RFC `buffer-physical-layout` (its guide-level examples).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from keyword import iskeyword
from typing import Any

import numpy as np

from layoutproof.ir.diagnostic import counted, error
from layoutproof.ir.dtype import INT32, DType, Kind
from layoutproof.ir.expr import Expr, IntImm, Var, const, require
from layoutproof.ir.stmt import IterKind
from layoutproof.lowering import codes

_SERIAL = count()


@dataclass(frozen=True, slots=True, eq=False)
class Axis(Var):
    """An index of a definition, and a loop of its stage: `extent` integers from `start`. Compared by identity."""

    start: Expr = IntImm(0)
    extent: Expr = IntImm(1)
    kind: IterKind = IterKind.SPATIAL
    serial: int = field(default_factory=lambda: next(_SERIAL))

    def __repr__(self) -> str:
        return f"axis {self.name}"


class Combiner(StrEnum):
    """How a reduction combines its result so far with the next value."""

    SUM = "sum"
    PROD = "prod"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True, eq=False)
class Reduction(Expr):
    """`value` combined over `axes`; occurs only at the top of a compute's value."""

    combiner: Combiner
    value: Expr
    axes: tuple[Axis, ...]

    @property
    def dtype(self) -> DType:
        """The type of the value: every step rounds in it."""
        return self.value.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """The origin of a tensor: this class itself is a placeholder. Compared by identity."""

    name: str
    shape: tuple[Expr, ...]
    dtype: DType

    @property
    def axis(self) -> tuple[Axis, ...]:
        """The axes of a stage that computes the tensor, one for each axis of its shape; a placeholder has no stage."""
        return ()

    @property
    def reduce_axis(self) -> tuple[Axis, ...]:
        """The axes that the value is reduced over."""
        return ()


@dataclass(frozen=True, slots=True, eq=False)
class Computed(Operation):
    """A tensor whose element at `axis` is `value`."""

    axes: tuple[Axis, ...]
    value: Expr

    @property
    def axis(self) -> tuple[Axis, ...]:
        """One for each axis of the shape."""
        return self.axes

    @property
    def reduce_axis(self) -> tuple[Axis, ...]:
        """The axes of the reduction, in order; none without one."""
        return self.value.axes if isinstance(self.value, Reduction) else ()


@dataclass(frozen=True, slots=True, eq=False)
class Scheduled(Operation):
    """A tensor of a schedule, in a new layout or as a copy: `axes` are its physical axes, loops of the stage that
    computes it.
    """

    axes: tuple[Axis, ...]
    reduced: tuple[Axis, ...]

    @property
    def axis(self) -> tuple[Axis, ...]:
        """One for each physical axis; none for a tensor that is given."""
        return self.axes

    @property
    def reduce_axis(self) -> tuple[Axis, ...]:
        """The axes that the value is reduced over."""
        return self.reduced


@dataclass(frozen=True, slots=True)
class Tensor:
    """The elements of an operation. Indexing reads one element; `.op.axis` are the axes that a schedule may use."""

    op: Operation

    # Without it Python would try indices from 0 upwards.
    __iter__ = None

    @property
    def name(self) -> str:
        """The tensor's name in the program."""
        return self.op.name

    @property
    def shape(self) -> tuple[Expr, ...]:
        """One extent for each axis."""
        return self.op.shape

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self.op.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __getitem__(self, indices: Any) -> Expr:
        """The element at `indices`. Raises LayoutproofError unless there is one integer expression for each axis."""
        given = indices if isinstance(indices, tuple) else (indices,)
        if len(given) != self.ndim:
            has = counted(self.ndim, "axis", "axes")
            raise error(
                codes.TE_INDEX, f"{self.name} has {has} and is read at {counted(len(given), 'index', 'indices')}"
            )
        return TensorRead(self, tuple(self._index(axis, index) for axis, index in enumerate(given)))

    def __call__(self, *indices: Any) -> Expr:
        """The element at `indices`, as `self[indices]`."""
        return self[indices]

    def _index(self, axis: int, index: Any) -> Expr:
        if isinstance(index, int | np.integer) and not isinstance(index, bool):
            return const(int(index))
        if isinstance(index, Expr) and index.dtype.is_integer and index.dtype.lanes == 1:
            return index
        what = f"a {index.dtype}" if isinstance(index, Expr) else f"{index!r}"
        raise error(codes.TE_INDEX, f"index {axis} of {self.name} is {what}, an integer expression is expected")

    def __repr__(self) -> str:
        return f"tensor {self.name}"


@dataclass(frozen=True, slots=True, eq=False)
class TensorRead(Expr):
    """One element of a tensor."""

    tensor: Tensor
    indices: tuple[Expr, ...]

    def _check(self) -> None:
        require(len(self.indices) == self.tensor.ndim, f"{self.tensor.name} is read at {len(self.indices)} indices")

    @property
    def dtype(self) -> DType:
        """The type of the tensor's elements."""
        return self.tensor.dtype


def checked_name(name: object, what: str) -> str:
    """`name`, if a program can use it. Raises LayoutproofError."""
    if not isinstance(name, str) or not name.isidentifier() or iskeyword(name):
        raise error(codes.TE_NAME, f"the name of {what} is {name!r}, a Python identifier is expected")
    return name


def checked_shape(shape: object, what: str) -> tuple[Expr, ...]:
    """Extents as expressions; a single extent is allowed. Raises LayoutproofError."""
    given: Sequence[Any] = list(shape) if isinstance(shape, list | tuple) else [shape]
    return tuple(checked_extent(extent, f"axis {axis} of {what}") for axis, extent in enumerate(given))


def checked_extent(extent: object, what: str) -> Expr:
    """An extent as an expression. Raises LayoutproofError for what is no integer, or is negative."""
    if isinstance(extent, int | np.integer) and not isinstance(extent, bool):
        extent = const(int(extent))
    if not isinstance(extent, Expr) or not extent.dtype.is_integer or extent.dtype.lanes != 1:
        shown = f"a {extent.dtype}" if isinstance(extent, Expr) else repr(extent)
        raise error(
            codes.TE_SHAPE, f"{what} has the extent {shown}, an integer or an expression of variables is expected"
        )
    if isinstance(extent, IntImm) and extent.value < 0:
        raise error(codes.TE_SHAPE, f"{what} has the extent {extent.value}")
    return extent


def checked_dtype(dtype: object, what: str, help: str | None = None) -> DType:
    """A data type, or one by its name. Raises LayoutproofError, with `help`."""
    if isinstance(dtype, DType):
        return dtype
    try:
        parsed = DType.parse(dtype) if isinstance(dtype, str) else None
    except ValueError:
        parsed = None
    if parsed is None or parsed.kind is Kind.HANDLE:
        raise error(codes.TE_DTYPE, f"{dtype!r} is no data type that {what} can have", help=help)
    return parsed


def placeholder(shape: object, dtype: str | DType = "float32", name: str = "placeholder") -> Tensor:
    """An input tensor. `shape` are integers or expressions of variables. Raises LayoutproofError."""
    known = checked_name(name, "a placeholder")
    help = "the name is given as name=..." if name == "placeholder" else None
    return Tensor(Operation(known, checked_shape(shape, known), checked_dtype(dtype, known, help)))


def var(name: str, dtype: str | DType = "int32") -> Var:
    """A variable: a size that shapes bind, or a parameter. Raises LayoutproofError for a bad name or type."""
    return Var(checked_name(name, "a variable"), checked_dtype(dtype, f"variable {name}"))


def reduce_axis(range: object, name: str = "rv") -> Axis:
    """An axis to reduce over: `(start, end)`, the end not included, or only the extent. Raises LayoutproofError."""
    known = checked_name(name, "a reduction axis")
    if not isinstance(range, list | tuple):
        extent = checked_extent(range, f"the reduction axis {known}")
        return Axis(known, extent.dtype, const(0, extent.dtype), extent, IterKind.REDUCE)
    if len(range) != 2:
        raise error(codes.TE_SHAPE, f"the range of the reduction axis {known} is {range!r}, (start, end) is expected")
    start, end = (_bound(bound, known) for bound in range)
    if isinstance(start, IntImm) and isinstance(end, IntImm):
        extent = checked_extent(end.value - start.value, f"the reduction axis {known}")
    else:
        extent = end if isinstance(start, IntImm) and start.value == 0 else end - start
    if isinstance(start, IntImm):
        start = const(start.value, extent.dtype)
    return Axis(known, extent.dtype, start, extent, IterKind.REDUCE)


def _bound(bound: object, name: str) -> Expr:
    if isinstance(bound, int | np.integer) and not isinstance(bound, bool):
        return const(int(bound))
    if isinstance(bound, Expr) and bound.dtype in (INT32, DType(Kind.INT, 64)):
        return bound
    raise error(
        codes.TE_SHAPE, f"a bound of the reduction axis {name} is {bound!r}, an integer or an expression is expected"
    )
