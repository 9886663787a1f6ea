"""Scalar expressions evaluated at many points at once, as `ir/semantics.py` and the interpreter have it: integers wrap, floats round once
per operation in their own type, the untaken side of a lazy operator traps nowhere.

Floats are float64 arrays of numbers of their type; integers arrays of their own width; truth values arrays of bool. A point where an
operation has no result is marked in `trapped`. Part of the trust base: compared with the interpreter in the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutproof.ir import semantics
from layoutproof.ir.dtype import BOOL, DType, Kind
from layoutproof.ir.evaluate import COMPARISONS
from layoutproof.ir.expr import (
    Binary,
    BinaryOp,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IfThenElseExpr,
    IntImm,
    Logical,
    LogicalOp,
    Not,
    Select,
    Var,
)
from layoutproof.ir.interp.number import call_math
from layoutproof.ir.intrinsics import Call, Limit
from layoutproof.ir.numpy_types import numpy_dtype
from layoutproof.verify.values.functions import exact_function
from layoutproof.verify.values.rounding import round_array
from layoutproof.verify.values.terms import PASSED_ON, chooses_zero_sign, constant_value

Values = NDArray[Any]
Mask = NDArray[np.bool_]


class NotEvaluated(Exception):
    """An expression that is no scalar value arithmetic; `expr` is the part."""

    def __init__(self, expr: Expr) -> None:
        super().__init__(f"{type(expr).__name__} of type {expr.dtype} is not scalar value arithmetic")
        self.expr = expr


@dataclass(frozen=True, slots=True)
class Computed:
    """A float operation's values, where it is evaluated."""

    where: Mask
    values: Values


def array_of(values: list[Any], dtype: DType) -> Values:
    """Points' values of one variable."""
    return np.array(values, dtype=np.float64 if dtype.is_float else numpy_dtype(dtype))


class Points:
    """Many assignments of variables, by name, and the evaluation of expressions at all of them.

    `zero_signs` forces the zeros that float operations yield, one entry an operation in the order of evaluation: False for +0.0, True for
    -0.0, None for what IEEE says; operations beyond its end are left alone. `read` says of each variable where it is evaluated.
    """

    def __init__(self, values: Mapping[str, Values], size: int, zero_signs: tuple[bool | None, ...] = ()) -> None:
        self.values = values
        self.size = size
        self.trapped: Mask = np.zeros(size, dtype=np.bool_)
        self.computed: list[Computed] = []
        self.read: dict[str, Mask] = {}
        self._signs = iter(zero_signs)
        self._path: Mask = np.ones(size, dtype=np.bool_)

    def value(self, expr: Expr) -> Values:
        """The values of a scalar expression at every point. Raises NotEvaluated."""
        evaluate = _EVALUATORS.get(type(expr))
        if evaluate is None or expr.dtype.lanes != 1 or expr.dtype.kind is Kind.HANDLE:
            raise NotEvaluated(expr)
        with np.errstate(all="ignore"):
            result = evaluate(self, expr)
            if expr.dtype.is_float and _is_operation(expr):
                if chooses_zero_sign(expr):
                    result = self._signed(result)
                self.computed.append(Computed(self._path, result))
        return result

    def _signed(self, values: Values) -> Values:
        negative = next(self._signs, None)
        return values if negative is None else np.where(values == 0.0, -0.0 if negative else 0.0, values)

    def note(self, var: Var) -> None:
        """Record where a variable is evaluated."""
        before = self.read.get(var.name)
        self.read[var.name] = self._path if before is None else before | self._path

    def trap(self, condition: Values) -> None:
        """Record where an operation has no result."""
        self.trapped = self.trapped | (self._path & condition)

    def under(self, condition: Mask, expr: Expr) -> Values:
        """The values of an expression that is evaluated only where `condition` holds."""
        outer = self._path
        self._path = outer & condition
        try:
            return self.value(expr)
        finally:
            self._path = outer

    def full(self, value: float | int | bool, dtype: DType) -> Values:
        """One value at every point."""
        return np.full(self.size, value, dtype=np.float64 if dtype.is_float else numpy_dtype(dtype))


def _is_operation(expr: Expr) -> bool:
    return not isinstance(expr, PASSED_ON)


def _variable(points: Points, expr: Var) -> Values:
    points.note(expr)
    return points.values[expr.name]


def _constant(points: Points, expr: Expr) -> Values:
    value = constant_value(expr)
    assert value is not None
    return points.full(bool(value) if expr.dtype.is_bool else value, expr.dtype)


# -- arithmetic ---------------------------------------------------------------------------------------------------------------


def _floor_parts(points: Points, a: Values, b: Values, dtype: DType) -> tuple[Values, Values, Values]:
    """Truncated quotient, truncated remainder, and where the floored quotient is one less; 1 divides where there is a trap."""
    bad = b == 0
    if dtype.kind is Kind.INT:
        bad = bad | ((b == -1) & (a == dtype.min_int))
    points.trap(bad)
    b = np.where(bad, np.ones_like(b), b)
    floored, rest = a // b, a % b  # numpy rounds down
    up = (rest != 0) & ((a < 0) != (b < 0))
    return np.where(up, floored + 1, floored), np.where(up, rest - b, rest), up


def _divide(points: Points, op: BinaryOp, a: Values, b: Values, dtype: DType) -> Values:
    quotient, remainder, up = _floor_parts(points, a, b, dtype)
    match op:
        case BinaryOp.TRUNCDIV:
            return quotient
        case BinaryOp.TRUNCMOD:
            return remainder
        case BinaryOp.FLOORDIV:
            return np.where(up, quotient - 1, quotient)
        case _:
            return np.where(up, remainder + b, remainder)


def _shift(points: Points, op: BinaryOp, a: Values, b: Values, dtype: DType) -> Values:
    bad = (b < 0) | (b >= dtype.bits)
    points.trap(bad)
    b = np.where(bad, np.zeros_like(b), b)
    return np.left_shift(a, b) if op is BinaryOp.SHL else np.right_shift(a, b)


_PLAIN: Mapping[BinaryOp, Callable[[Values, Values], Values]] = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.SUB: lambda a, b: a - b,
    BinaryOp.MUL: lambda a, b: a * b,
    BinaryOp.MIN: lambda a, b: np.where(a < b, a, b),
    BinaryOp.MAX: lambda a, b: np.where(a > b, a, b),
    BinaryOp.DIV: lambda a, b: a / b,
    BinaryOp.BITAND: lambda a, b: a & b,
    BinaryOp.BITOR: lambda a, b: a | b,
    BinaryOp.BITXOR: lambda a, b: a ^ b,
}
_WITH_TRAPS: Mapping[BinaryOp, Callable[[Points, BinaryOp, Values, Values, DType], Values]] = {
    BinaryOp.FLOORDIV: _divide,
    BinaryOp.FLOORMOD: _divide,
    BinaryOp.TRUNCDIV: _divide,
    BinaryOp.TRUNCMOD: _divide,
    BinaryOp.SHL: _shift,
    BinaryOp.SHR: _shift,
}


def _binary(points: Points, expr: Binary) -> Values:
    a, b, dtype = points.value(expr.lhs), points.value(expr.rhs), expr.dtype
    plain = _PLAIN.get(expr.op)
    if plain is None:
        return _WITH_TRAPS[expr.op](points, expr.op, a, b, dtype)
    result = plain(a, b)
    return round_array(result, dtype) if dtype.is_float else result


# -- comparisons and choices --------------------------------------------------------------------------------------------------


def _compare(points: Points, expr: Compare) -> Values:
    return np.asarray(COMPARISONS[expr.op](points.value(expr.lhs), points.value(expr.rhs)))


def _logical(points: Points, expr: Logical) -> Values:
    left = points.value(expr.lhs)
    if expr.op is LogicalOp.AND:
        return left & points.under(left, expr.rhs)
    return left | points.under(~left, expr.rhs)


def _select(points: Points, expr: Select) -> Values:
    return np.where(points.value(expr.condition), points.value(expr.then), points.value(expr.otherwise))


def _lazy(points: Points, expr: IfThenElseExpr) -> Values:
    condition = points.value(expr.condition)
    return np.where(condition, points.under(condition, expr.then), points.under(~condition, expr.otherwise))


# -- conversions and functions ------------------------------------------------------------------------------------------------


def _cast(points: Points, expr: Cast) -> Values:
    source, target, value = expr.value.dtype, expr.dtype, points.value(expr.value)
    if source == target:
        return value
    if target.is_bool:
        return np.asarray(value != 0)
    if target.is_float:
        return round_array(value, target) if source.is_float else _integers_to_float(value, source, target)
    if source.is_float:
        return _floats_to_integer(points, value, target)
    return value.astype(numpy_dtype(target))


def _integers_to_float(value: Values, source: DType, target: DType) -> Values:
    if source.bits <= 32 or source.is_bool or target.bits == 64:
        # exact in float64, or rounded once to it
        return round_array(value.astype(np.float64), target)
    if target.bits == 32:
        return value.astype(np.float32).astype(np.float64)
    return np.array([semantics.int_to_float(int(v), target) for v in value], dtype=np.float64)


def _floats_to_integer(points: Points, value: Values, target: DType) -> Values:
    whole = np.trunc(value)
    # both bounds are powers of two (or 0); a NaN is within neither
    fits = (whole >= float(target.min_int)) & (whole < float(target.max_int + 1))
    points.trap(~fits)
    return np.where(fits, whole, 0.0).astype(numpy_dtype(target))


def _call(points: Points, expr: Call) -> Values:
    arguments = [points.value(a) for a in expr.arguments]
    exact = exact_function(expr.function, expr.dtype)
    if exact is not None:
        return exact(*arguments)
    # What the library computes refutes at a point that is tried; `search` enumerates no claim that calls it.
    rows = zip(*(a.tolist() for a in arguments), strict=True)
    return np.array([call_math(expr.function, row, expr.dtype) for row in rows], dtype=arguments[0].dtype)


_EVALUATORS: Mapping[type[Expr], Callable[[Points, Any], Values]] = {
    Var: _variable,
    IntImm: _constant,
    FloatImm: _constant,
    Limit: _constant,
    Binary: _binary,
    Compare: _compare,
    Logical: _logical,
    Not: lambda points, e: ~points.value(e.operand),
    Select: _select,
    IfThenElseExpr: _lazy,
    Cast: _cast,
    Call: _call,
}


def truth(value: bool, size: int) -> Mask:
    """One truth value at every point."""
    return np.full(size, value, dtype=numpy_dtype(BOOL))
