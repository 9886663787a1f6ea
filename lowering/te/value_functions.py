"""Functions of values for formulas, named as in upstream's front end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import (
    Cast,
    Expr,
    ExprLike,
    IfThenElseExpr,
    Not,
    Select,
    binary,
    logical_and,
    logical_or,
    match_operands,
)
from layoutproof.ir.expr import const as constant
from layoutproof.ir.intrinsics import Call, Limit, LimitKind
from layoutproof.ir.operators import BinaryOp
from layoutproof.lowering import codes
from layoutproof.lowering.te.tensor import checked_dtype


@contextmanager
def _making(what: str) -> Iterator[None]:
    """Errors in building a node, as errors of the definition."""
    try:
        yield
    except (TypeError, ValueError, AttributeError) as problem:
        said = str(problem)
        raise error(codes.TE_VALUE, said if said.startswith(what) else f"{what}: {said}") from problem


def if_then_else(condition: Expr, then: ExprLike, otherwise: ExprLike) -> Expr:
    """`then` where the condition holds, else `otherwise`; only one of them is evaluated."""
    with _making("if_then_else"):
        return IfThenElseExpr(condition, *match_operands(then, otherwise))


def select(condition: Expr, then: ExprLike, otherwise: ExprLike) -> Expr:
    """One of two values, both of which are evaluated."""
    with _making("select"):
        return Select(condition, *match_operands(then, otherwise))


def all(*conditions: Expr) -> Expr:
    """Whether every condition holds."""
    with _making("all"):
        return logical_and(*conditions)


def any(*conditions: Expr) -> Expr:
    """Whether one of the conditions holds."""
    with _making("any"):
        return logical_or(*conditions)


def logical_not(condition: Expr) -> Expr:
    """Whether the condition does not hold."""
    with _making("logical_not"):
        return Not(condition)


def const(value: int | float | bool, dtype: str | DType | None = None) -> Expr:
    """A constant; by default of int32 or float32."""
    given = "float32" if dtype is None and isinstance(value, float) else dtype
    with _making("const"):
        return constant(value, None if given is None else checked_dtype(given, "a constant"))


def cast(value: Expr, dtype: str | DType) -> Expr:
    """The value as another type."""
    with _making("cast"):
        return Cast(checked_dtype(dtype, "a cast"), value)


def min_value(dtype: str | DType) -> Expr:
    """The least finite value of a type."""
    return _limit(LimitKind.MIN, dtype)


def max_value(dtype: str | DType) -> Expr:
    """The greatest finite value of a type."""
    return _limit(LimitKind.MAX, dtype)


def infinity(dtype: str | DType) -> Expr:
    """The infinity of a float type."""
    return _limit(LimitKind.INFINITY, dtype)


def _limit(kind: LimitKind, dtype: str | DType) -> Expr:
    with _making(kind):
        return Limit(kind, checked_dtype(dtype, str(kind)))


def truncdiv(a: Expr, b: ExprLike) -> Expr:
    """The integer quotient, rounded toward zero; `//` rounds down."""
    with _making("truncdiv"):
        return binary(BinaryOp.TRUNCDIV, a, b)


def truncmod(a: Expr, b: ExprLike) -> Expr:
    """What `truncdiv` leaves; `%` is what `//` leaves."""
    with _making("truncmod"):
        return binary(BinaryOp.TRUNCMOD, a, b)


def _call(function: str, *arguments: Expr) -> Expr:
    with _making(function):
        return Call(function, arguments)


def exp(value: Expr) -> Expr:
    """e to the power of the value."""
    return _call("exp", value)


def log(value: Expr) -> Expr:
    """The natural logarithm."""
    return _call("log", value)


def sqrt(value: Expr) -> Expr:
    """The square root."""
    return _call("sqrt", value)


def rsqrt(value: Expr) -> Expr:
    """One over the square root."""
    return _call("rsqrt", value)


def tanh(value: Expr) -> Expr:
    """The hyperbolic tangent."""
    return _call("tanh", value)


def sigmoid(value: Expr) -> Expr:
    """`1 / (1 + exp(-value))`."""
    return _call("sigmoid", value)


def erf(value: Expr) -> Expr:
    """The error function."""
    return _call("erf", value)


def sin(value: Expr) -> Expr:
    """The sine."""
    return _call("sin", value)


def cos(value: Expr) -> Expr:
    """The cosine."""
    return _call("cos", value)


def abs(value: Expr) -> Expr:
    """The absolute value."""
    return _call("abs", value)


def floor(value: Expr) -> Expr:
    """The float rounded down."""
    return _call("floor", value)


def ceil(value: Expr) -> Expr:
    """The float rounded up."""
    return _call("ceil", value)


def round(value: Expr) -> Expr:
    """The float rounded to the nearest integer."""
    return _call("round", value)


def power(base: Expr, exponent: Expr) -> Expr:
    """The base to the power of the exponent."""
    return _call("pow", base, exponent)
