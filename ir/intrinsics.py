"""Expressions beyond arithmetic: math functions, opaque calls, undefined and extreme values, assumptions, pointers.

Sources: the seeds `vectorized-tir-buffers` (pointer casts) and `layout-transformation-padding-roadmap` (arbitrary values, assumptions).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from layoutproof.ir.dtype import BOOL, HANDLE, DType, Kind
from layoutproof.ir.expr import Expr, require

# name -> number of arguments. Pure; on floats, except abs, which also takes integers.
MATH_FUNCTIONS: Mapping[str, int] = {
    "exp": 1, "log": 1, "sqrt": 1, "rsqrt": 1, "tanh": 1, "sigmoid": 1, "erf": 1, "pow": 2, "abs": 1, "floor": 1,
    "ceil": 1, "round": 1, "fma": 3, "fmax": 2, "fmin": 2, "maximum": 2, "minimum": 2,
    "exp2": 1, "log2": 1, "log10": 1, "sin": 1, "cos": 1, "tan": 1, "sinh": 1, "cosh": 1, "atan": 1, "trunc": 1,
}  # fmt: skip


class LimitKind(StrEnum):
    """The special values of a type."""

    INFINITY = "infinity"
    MIN = "min_value"
    MAX = "max_value"


@dataclass(frozen=True, slots=True, eq=False)
class StringImm(Expr):
    """A text argument of an opaque call or an attribute."""

    value: str

    @property
    def dtype(self) -> DType:
        """Texts are passed as handles."""
        return HANDLE


@dataclass(frozen=True, slots=True, eq=False)
class PointerCast(Expr):
    """A pointer seen as a pointer to elements of type `pointee` (seed `vectorized-tir-buffers`, pointer casting)."""

    pointee: DType
    pointer: Expr

    def _check(self) -> None:
        require(self.pointer.dtype.kind is Kind.HANDLE, f"a pointer cast of a {self.pointer.dtype}")

    @property
    def dtype(self) -> DType:
        """A handle."""
        return self.pointer.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Call(Expr):
    """A pure math function of `MATH_FUNCTIONS`."""

    function: str
    arguments: tuple[Expr, ...]

    def _check(self) -> None:
        arity = MATH_FUNCTIONS.get(self.function)
        require(arity is not None, f"unknown math function {self.function}")
        require(arity == len(self.arguments), f"{self.function} takes {arity} arguments, not {len(self.arguments)}")
        first = self.arguments[0].dtype
        require(all(a.dtype == first for a in self.arguments), f"the arguments of {self.function} differ in type")
        require(first.is_float or (self.function == "abs" and first.is_integer), f"{self.function} of a {first}")

    @property
    def dtype(self) -> DType:
        """The type of the arguments."""
        return self.arguments[0].dtype


@dataclass(frozen=True, slots=True, eq=False)
class OpaqueCall(Expr):
    """A call nobody here looks into (extern functions, barriers, atomics, intrinsics): kept, printed, never proved about."""

    function: str
    arguments: tuple[Expr, ...]
    dtype: DType


@dataclass(frozen=True, slots=True, eq=False)
class Undef(Expr):
    """An arbitrary value, fresh at each evaluation; may not be duplicated, nor stand in an index or a condition."""

    dtype: DType


@dataclass(frozen=True, slots=True, eq=False)
class Limit(Expr):
    """`infinity`, `min_value` or `max_value` of a scalar type (for floats, min and max are the finite ones)."""

    kind: LimitKind
    dtype: DType

    def _check(self) -> None:
        require(self.dtype.lanes == 1 and (self.dtype.is_float or self.dtype.is_integer), f"{self.kind} of {self.dtype}")
        require(self.kind is not LimitKind.INFINITY or self.dtype.is_float, f"{self.dtype} has no infinity")


@dataclass(frozen=True, slots=True, eq=False)
class Assume(Expr):
    """`assume(condition)`: stands in an Evaluate only. Its top-level `buffer[...] == value` is value identity (`programs`, contract)."""

    condition: Expr

    def _check(self) -> None:
        require(self.condition.dtype == BOOL, f"an assumption is a truth value, not a {self.condition.dtype}")

    @property
    def dtype(self) -> DType:
        """bool; there is no value to use."""
        return BOOL


def undef(dtype: str | DType) -> Undef:
    """An arbitrary value of a type, as a pad value: the padding may be read and written and holds anything."""
    return Undef(DType.parse(dtype) if isinstance(dtype, str) else dtype)
