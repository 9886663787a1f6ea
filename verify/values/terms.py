"""Small things about scalar expressions that every engine of values needs: constants, value identity, what can trap."""

from __future__ import annotations

import math
from collections.abc import Iterator

from layoutproof.ir.dtype import DType, Kind
from layoutproof.ir.expr import Binary, BinaryOp, Cast, Expr, FloatImm, IfThenElseExpr, IntImm, Select, Var
from layoutproof.ir.intrinsics import Call, Limit, LimitKind
from layoutproof.ir.semantics import max_finite
from layoutproof.ir.visit import walk

Number = float | int

# What computes no float: it names one, or passes one on, a literal perhaps.
PASSED_ON = (Var, FloatImm, Limit, Select, IfThenElseExpr)
_TRAPPING = {BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD, BinaryOp.SHL, BinaryOp.SHR}
_SHIFTS = {BinaryOp.SHL, BinaryOp.SHR}
_SIGNED_ZERO_OPS = {BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.DIV, BinaryOp.MIN, BinaryOp.MAX}


def constant_value(expr: Expr) -> Number | None:
    """The value of a literal (truth values as 0 and 1), or None."""
    match expr:
        case FloatImm(value=value) | IntImm(value=value):
            return value
        case Limit(kind=kind, dtype=dtype) if dtype.is_integer:
            return dtype.max_int if kind is LimitKind.MAX else dtype.min_int
        case Limit(kind=kind, dtype=dtype):
            largest = math.inf if kind is LimitKind.INFINITY else max_finite(dtype)
            return -largest if kind is LimitKind.MIN else largest
        case _:
            return None


def literal(value: Number, dtype: DType) -> Expr:
    """The literal of a value; a float must be a number of the type."""
    return FloatImm(float(value), dtype) if dtype.is_float else IntImm(int(value), dtype)


def is_identical(a: Number, b: Number) -> bool:
    """Value identity of two numbers of one type: +0.0 is not -0.0, a NaN is any NaN."""
    if isinstance(a, float) or isinstance(b, float):
        a, b = float(a), float(b)
        return (a != a and b != b) or (a == b and math.copysign(1.0, a) == math.copysign(1.0, b))
    return a == b


def can_trap(expr: Expr) -> bool:
    """Whether evaluating this very node, its operands apart, may have no result."""
    match expr:
        case Binary(op=op, rhs=rhs) if op in _TRAPPING:
            amount = constant_value(rhs)
            if amount is None:
                return True
            return not 0 <= amount < expr.dtype.bits if op in _SHIFTS else amount == 0 or (amount == -1 and expr.dtype.kind is Kind.INT)
        case Cast(dtype=dtype, value=value):
            return dtype.is_integer and value.dtype.is_float
        case _:
            return False


def trapping_parts(expr: Expr) -> Iterator[Expr]:
    """Every node below that can trap."""
    return (node for node in walk(expr) if isinstance(node, Expr) and can_trap(node))


def can_trap_below(expr: Expr) -> bool:
    """Whether evaluating it may have no result."""
    return next(trapping_parts(expr), None) is not None


def chooses_zero_sign(expr: Expr) -> bool:
    """Whether this node is an operation that may choose the sign of its zero result under `nsz`."""
    match expr:
        case Binary(op=op):
            return expr.dtype.is_float and op in _SIGNED_ZERO_OPS
        case Call(function=function):
            return expr.dtype.is_float and function != "abs"
        case _:
            return False
