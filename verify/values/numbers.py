"""Scalar expressions evaluated at many points at once: integers wrap, floats round once per operation in their own type
(ties to even), named functions are exact or not evaluated. Written apart from the interpreter; the tests compare the
two. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutproof.ir import semantics
from layoutproof.ir.dtype import BOOL, DType, Kind, numpy_dtype
from layoutproof.ir.expr import Binary, Cast, Compare, Expr, FloatImm, IfThenElseExpr, IntImm, Logical, Not, Select, Var
from layoutproof.ir.interp.runtime import call_math
from layoutproof.ir.intrinsics import Call, Limit, Reinterpret
from layoutproof.ir.operators import COMPARISONS, BinaryOp, LogicalOp
from layoutproof.ir.semantics import float_format
from layoutproof.verify.values.terms import PASSED_ON, chooses_zero_sign, constant_value

Floats = NDArray[np.float64]


def round_array(values: Floats, dtype: DType) -> Floats:
    """Float64 numbers rounded to the nearest numbers of a float type, as float64."""
    if dtype.bits == 64:
        return values
    if dtype.kind is Kind.FLOAT:
        # numpy converts from float64 in one rounding, to float16 too
        with np.errstate(all="ignore"):
            narrow: NDArray[Any] = values.astype(np.float32 if dtype.bits == 32 else np.float16)
        return narrow.astype(np.float64)
    return round_to_format(values, *float_format(dtype))


def round_to_format(values: Floats, precision: int, emin: int, emax: int) -> Floats:
    """Rounded to `precision` significant bits, with subnormals below `2**emin`, infinities from `2**(emax + 1)` on."""
    finite = np.isfinite(values)
    with np.errstate(all="ignore"):
        mantissa, exponent = np.frexp(np.where(finite, values, 0.0))
        ulp = np.maximum(exponent - precision, emin - precision + 1)
        rounded = np.ldexp(np.rint(np.ldexp(mantissa, exponent - ulp)), ulp)
        rounded = np.where(np.abs(rounded) >= np.ldexp(1.0, emax + 1), np.copysign(np.inf, rounded), rounded)
    return np.where(finite, np.copysign(rounded, values), values)


Values = NDArray[Any]


def _maximum(a: Floats, b: Floats) -> Floats:
    """IEEE 754-2019 maximum: a NaN wins, +0 is above -0."""
    larger = np.where((a == 0.0) & (b == 0.0), np.where(np.signbit(a), b, a), np.where(a > b, a, b))
    return np.where(np.isnan(a) | np.isnan(b), np.nan, larger)


def _minimum(a: Floats, b: Floats) -> Floats:
    """IEEE 754-2019 minimum: a NaN wins, -0 is below +0."""
    smaller = np.where((a == 0.0) & (b == 0.0), np.where(np.signbit(a), a, b), np.where(a < b, a, b))
    return np.where(np.isnan(a) | np.isnan(b), np.nan, smaller)


def _but_nan(function: Callable[[Floats, Floats], Floats]) -> Callable[[Floats, Floats], Floats]:
    """C's fmax and fmin: a NaN loses."""
    return lambda a, b: np.where(np.isnan(a), b, np.where(np.isnan(b), a, function(a, b)))


def fused_multiply_add(a: Floats, b: Floats, c: Floats, dtype: DType) -> Floats:
    """`a*b + c` rounded once to a type of which all are numbers (IEEE fusedMultiplyAdd)."""
    with np.errstate(all="ignore"):
        product = a * b
        plain = product + c
        if dtype.bits < 64:
            return round_array(np.where(np.isfinite(plain), _to_odd(product, c), plain), dtype)
    return np.array(
        [_of_doubles(*row) for row in zip(a.tolist(), b.tolist(), c.tolist(), plain.tolist(), strict=True)],
        dtype=np.float64,
    )


def _to_odd(a: Floats, b: Floats) -> Floats:
    """The sum, inexact ones rounded to the neighbour with an odd last bit: a further rounding, to 51 bits or fewer, is
    then as if there had been one only (Boldo and Melquiond 2008). The rest of a sum is exact (Knuth's two-sum), since
    nothing here is near overflow: a product of two numbers of 24 bits is exact, and far inside float64's range.
    """
    total = a + b
    of_b = total - a
    rest = (a - (total - of_b)) + (b - of_b)
    even = (np.asarray(total, dtype=np.float64).view(np.uint64) & 1) == 0
    away = np.where((rest > 0.0) == (total > 0.0), np.copysign(np.inf, total), 0.0)
    return np.where((rest != 0.0) & even & np.isfinite(total), np.nextafter(total, away), total)


def _of_doubles(a: float, b: float, c: float, plain: float) -> float:
    if not (isfinite(a) and isfinite(b)) or a == 0.0 or b == 0.0:
        return plain
    if not isfinite(c):
        return c  # where the product alone may overflow
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return 0.0
    try:
        return float(exact)  # rounds once, ties to even; what is tiny keeps its sign
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")


_EXACT: Mapping[str, Callable[..., Values]] = {
    "abs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,  # halves to the even neighbour
    "fmax": _but_nan(_maximum),
    "fmin": _but_nan(_minimum),
    "maximum": _maximum,
    "minimum": _minimum,
}
"""Results that are numbers of the arguments' type already."""


def exact_function(name: str, dtype: DType) -> Callable[..., Values] | None:
    """The function on arrays of numbers of a type; None for one that is not exact."""
    if name == "fma":
        return lambda a, b, c: fused_multiply_add(a, b, c, dtype)
    if name == "sqrt":
        # once-rounded: float64 has more than twice the bits of the narrower types (Figueroa 1995)
        return lambda a: round_array(np.sqrt(a), dtype)
    return _EXACT.get(name)


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

    `zero_signs` forces the zeros that float operations yield, one entry an operation in the order of evaluation: False
    for +0.0, True for -0.0, None for what IEEE says; operations beyond its end are left alone. `read` says of each
    variable where it is evaluated.
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


# Arithmetic


def _floor_parts(points: Points, a: Values, b: Values, dtype: DType) -> tuple[Values, Values, Values]:
    """Truncated quotient and remainder, and where the floored quotient is one less; 1 divides at a trap."""
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


# Comparisons and choices


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


# Conversions and functions


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


def _reinterpret(points: Points, expr: Reinterpret) -> Values:
    bits, dtype = points.value(expr.value), expr.dtype
    whole = bits.astype(f"uint{dtype.bits}")
    return widened(whole.view(numpy_dtype(dtype)))


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
    Reinterpret: _reinterpret,
    Call: _call,
}


def truth(value: bool, size: int) -> Mask:
    """One truth value at every point."""
    return np.full(size, value, dtype=numpy_dtype(BOOL))


def every_value(var: Var) -> Values:
    """Every value of a type of 16 bits at most, as an array."""
    bits = np.arange(1 << var.dtype.bits, dtype=f"uint{var.dtype.bits}").view(numpy_dtype(var.dtype))
    return widened(bits) if var.dtype.is_float else bits


def widened(values: Values) -> Values:
    """Floats of any type as float64; signalling NaNs become quiet without a warning."""
    with np.errstate(invalid="ignore"):
        return values.astype(np.float64)
