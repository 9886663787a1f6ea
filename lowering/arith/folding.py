"""Constant folding of values, by `ir.semantics` in the operation's own type."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from layoutproof.ir import semantics
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Binary, Cast, Compare, Expr, FloatImm, IntImm, const
from layoutproof.ir.operators import COMPARISONS, BinaryOp
from layoutproof.ir.semantics import Trap

_INTEGER: Mapping[BinaryOp, Callable[[int, int, DType], int]] = {
    BinaryOp.ADD: lambda a, b, t: semantics.wrap(a + b, t),
    BinaryOp.SUB: lambda a, b, t: semantics.wrap(a - b, t),
    BinaryOp.MUL: lambda a, b, t: semantics.wrap(a * b, t),
    BinaryOp.FLOORDIV: lambda a, b, t: semantics.divide("floordiv", a, b, t),
    BinaryOp.FLOORMOD: lambda a, b, t: semantics.divide("floormod", a, b, t),
    BinaryOp.TRUNCDIV: lambda a, b, t: semantics.divide("truncdiv", a, b, t),
    BinaryOp.TRUNCMOD: lambda a, b, t: semantics.divide("truncmod", a, b, t),
    BinaryOp.MIN: lambda a, b, t: min(a, b),
    BinaryOp.MAX: lambda a, b, t: max(a, b),
    BinaryOp.BITAND: lambda a, b, t: a & b,
    BinaryOp.BITOR: lambda a, b, t: a | b,
    BinaryOp.BITXOR: lambda a, b, t: a ^ b,
    BinaryOp.SHL: semantics.shift_left,
    BinaryOp.SHR: semantics.shift_right,
}

# Sums, differences and products of two numbers of at most 24 bits of precision, rounded from float64, are rounded once
# (`interp.number`).
_FLOAT: Mapping[BinaryOp, Callable[[float, float], float]] = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.SUB: lambda a, b: a - b,
    BinaryOp.MUL: lambda a, b: a * b,
    BinaryOp.MIN: semantics.select_min,
    BinaryOp.MAX: semantics.select_max,
}


def fold_constants(expr: Expr) -> Expr:
    """The constant that an operation on constants gives; the expression itself if it has other operands or traps."""
    try:
        if isinstance(expr, Binary):
            return _binary(expr)
        if (
            isinstance(expr, Compare)
            and isinstance(expr.lhs, IntImm | FloatImm)
            and isinstance(expr.rhs, IntImm | FloatImm)
        ):
            return const(COMPARISONS[expr.op](expr.lhs.value, expr.rhs.value))
        if isinstance(expr, Cast) and isinstance(expr.value, IntImm | FloatImm):
            value = semantics.cast_value(expr.value.value, expr.value.dtype, expr.dtype)
            return FloatImm(float(value), expr.dtype) if expr.dtype.is_float else IntImm(int(value), expr.dtype)
    except Trap:
        return expr
    return expr


def _binary(expr: Binary) -> Expr:
    if isinstance(expr.lhs, IntImm) and isinstance(expr.rhs, IntImm) and expr.dtype.is_integer:
        return IntImm(_INTEGER[expr.op](expr.lhs.value, expr.rhs.value, expr.dtype), expr.dtype)
    operation = _FLOAT.get(expr.op)
    if operation is not None and isinstance(expr.lhs, FloatImm) and isinstance(expr.rhs, FloatImm):
        return FloatImm(semantics.round_float(operation(expr.lhs.value, expr.rhs.value), expr.dtype), expr.dtype)
    return expr
