"""What is padded, or was cropped: one number of a type, or undef."""

from __future__ import annotations

from math import copysign, inf

from layoutproof.graph import codes
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Expr, FloatImm, IntImm, const
from layoutproof.ir.interval import Interval
from layoutproof.ir.intrinsics import Undef

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
        return const(float(value) if dtype.is_float else bool(value) if dtype.is_bool and value in (0, 1) else value, dtype)
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
