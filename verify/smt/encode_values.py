"""Values as programs store them, to z3: integers of a fixed width that wrap as bit-vectors, floats as IEEE floats, one lane at a
time.

The meaning is that of `ir/semantics.py`: one rounding per operation, to nearest even; `max(a, b)` is `a > b ? a : b`. Every operation
that may have no result adds a condition to `traps`; the untaken side of a lazy operator traps only where it is taken. Functions of
the math library are uninterpreted: equal arguments give equal results, and nothing else is known. Variables are bit-vectors, floats
too. Part of the trust base.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from layoutproof.ir.dtype import FLOAT64, DType, Kind
from layoutproof.ir.expr import (
    Binary,
    BinaryOp,
    Cast,
    Compare,
    CompareOp,
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
from layoutproof.ir.intrinsics import Call, Limit, LimitKind
from layoutproof.ir.semantics import max_finite
from layoutproof.verify.smt.session import Query

# Exponent and significand bits (the hidden one included).
_FORMATS = {(Kind.FLOAT, 16): (5, 11), (Kind.FLOAT, 32): (8, 24), (Kind.FLOAT, 64): (11, 53), (Kind.BFLOAT, 16): (8, 8)}


class NotValue(Exception):
    """An expression that is no scalar value arithmetic; `expr` is the part."""

    def __init__(self, expr: Expr, reason: str) -> None:
        super().__init__(reason)
        self.expr = expr
        self.reason = reason


class ValueEncoder:
    """Expressions in one query. `traps` collects the conditions under which an operation has no result."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.z3 = query.z3
        self.ctx = query.ctx
        self.traps: list[Any] = []
        self.uninterpreted: set[str] = set()
        self._path: list[Any] = []
        self._rounding = self.z3.RNE(self.ctx)

    def value(self, expr: Expr) -> Any:
        """The term of a scalar expression: Bool, bit-vector or float by its type. Raises NotValue."""
        encode = _VALUES.get(type(expr))
        if encode is None or expr.dtype.lanes != 1 or expr.dtype.kind is Kind.HANDLE:
            raise NotValue(expr, f"{type(expr).__name__} of type {expr.dtype} is not scalar value arithmetic")
        return encode(self, expr)

    def same(self, a: Any, b: Any) -> Any:
        """Value identity: +0 is not -0, a NaN is any NaN. (It is what SMT-LIB's `=` means on floats.)"""
        return a == b

    def sort(self, dtype: DType) -> Any:
        """The float sort of a type."""
        return self.z3.FPSort(*_FORMATS[dtype.kind, dtype.bits], self.ctx)

    def integer(self, value: int, dtype: DType) -> Any:
        """A bit-vector literal."""
        return self.z3.BitVecVal(value, dtype.bits, self.ctx)

    def real(self, value: float, dtype: DType) -> Any:
        """A float literal; `value` is a number of the type, an infinity or NaN."""
        sort = self.sort(dtype)
        if value != value:
            return self.z3.fpNaN(sort)
        # Through float64's bits, which hold every narrower number exactly.
        bits = self.z3.BitVecVal(int.from_bytes(struct.pack(">d", value), "big"), 64, self.ctx)
        wide = self.z3.fpBVToFP(bits, self.z3.FPSort(11, 53, self.ctx), self.ctx)
        return wide if dtype.bits == 64 else self.z3.simplify(self.z3.fpFPToFP(self._rounding, wide, sort, self.ctx))

    def trap(self, condition: Any) -> None:
        """Record that evaluating has no result where `condition` holds, if it is evaluated."""
        self.traps.append(self.z3.And(*self._path, condition) if self._path else condition)

    def under(self, condition: Any, expr: Expr) -> Any:
        """The value of an expression that is evaluated only where `condition` holds."""
        self._path.append(condition)
        try:
            return self.value(expr)
        finally:
            self._path.pop()

    def choice(self, condition: Any, then: Any, otherwise: Any) -> Any:
        """`condition ? then : otherwise`."""
        return self.z3.If(condition, then, otherwise)


def _variable(enc: ValueEncoder, expr: Var) -> Any:
    dtype = expr.dtype
    if dtype.is_bool:
        return enc.z3.Bool(expr.name, enc.ctx)
    bits = enc.z3.BitVec(expr.name, dtype.bits, enc.ctx)
    return enc.z3.fpBVToFP(bits, enc.sort(dtype), enc.ctx) if dtype.is_float else bits


def _integer(enc: ValueEncoder, expr: IntImm) -> Any:
    return enc.z3.BoolVal(bool(expr.value), enc.ctx) if expr.dtype.is_bool else enc.integer(expr.value, expr.dtype)


def _limit(enc: ValueEncoder, expr: Limit) -> Any:
    if expr.dtype.is_integer:
        return enc.integer(expr.dtype.max_int if expr.kind is LimitKind.MAX else expr.dtype.min_int, expr.dtype)
    largest = float("inf") if expr.kind is LimitKind.INFINITY else max_finite(expr.dtype)
    return enc.real(-largest if expr.kind is LimitKind.MIN else largest, expr.dtype)


# -- integers -----------------------------------------------------------------------------------------------------------------


def _less(enc: ValueEncoder, a: Any, b: Any, dtype: DType) -> Any:
    return a < b if dtype.kind is Kind.INT else enc.z3.ULT(a, b)


def _divide(enc: ValueEncoder, op: BinaryOp, a: Any, b: Any, dtype: DType) -> Any:
    z3 = enc.z3
    enc.trap(b == 0)
    if dtype.kind is not Kind.INT:
        return z3.UDiv(a, b) if op in (BinaryOp.FLOORDIV, BinaryOp.TRUNCDIV) else z3.URem(a, b)
    enc.trap(z3.And(b == -1, a == dtype.min_int))
    quotient, remainder = a / b, z3.SRem(a, b)
    match op:
        case BinaryOp.TRUNCDIV:
            return quotient
        case BinaryOp.TRUNCMOD:
            return remainder
        case _:
            # The floored quotient is one less where the truncated one was rounded up.
            rounded_up = z3.And(remainder != 0, (remainder < 0) != (b < 0))
            return z3.If(rounded_up, quotient - 1, quotient) if op is BinaryOp.FLOORDIV else z3.If(rounded_up, remainder + b, remainder)


def _shift(enc: ValueEncoder, op: BinaryOp, a: Any, b: Any, dtype: DType) -> Any:
    # A negative amount is a large unsigned one.
    enc.trap(enc.z3.UGE(b, dtype.bits))
    if op is BinaryOp.SHL:
        return a << b
    return a >> b if dtype.kind is Kind.INT else enc.z3.LShR(a, b)


_INTEGER: dict[BinaryOp, Callable[[ValueEncoder, BinaryOp, Any, Any, DType], Any]] = {
    BinaryOp.ADD: lambda enc, op, a, b, d: a + b,
    BinaryOp.SUB: lambda enc, op, a, b, d: a - b,
    BinaryOp.MUL: lambda enc, op, a, b, d: a * b,
    BinaryOp.FLOORDIV: _divide,
    BinaryOp.FLOORMOD: _divide,
    BinaryOp.TRUNCDIV: _divide,
    BinaryOp.TRUNCMOD: _divide,
    BinaryOp.MIN: lambda enc, op, a, b, d: enc.choice(_less(enc, a, b, d), a, b),
    BinaryOp.MAX: lambda enc, op, a, b, d: enc.choice(_less(enc, b, a, d), a, b),
    BinaryOp.BITAND: lambda enc, op, a, b, d: a & b,
    BinaryOp.BITOR: lambda enc, op, a, b, d: a | b,
    BinaryOp.BITXOR: lambda enc, op, a, b, d: a ^ b,
    BinaryOp.SHL: _shift,
    BinaryOp.SHR: _shift,
}
_BOOLEAN: dict[BinaryOp, Callable[[ValueEncoder, Any, Any], Any]] = {
    BinaryOp.BITAND: lambda enc, a, b: enc.z3.And(a, b),
    BinaryOp.BITOR: lambda enc, a, b: enc.z3.Or(a, b),
    BinaryOp.BITXOR: lambda enc, a, b: enc.z3.Xor(a, b),
}
_FLOAT: dict[BinaryOp, Callable[[ValueEncoder, Any, Any], Any]] = {
    BinaryOp.ADD: lambda enc, a, b: enc.z3.fpAdd(enc._rounding, a, b, enc.ctx),
    BinaryOp.SUB: lambda enc, a, b: enc.z3.fpSub(enc._rounding, a, b, enc.ctx),
    BinaryOp.MUL: lambda enc, a, b: enc.z3.fpMul(enc._rounding, a, b, enc.ctx),
    BinaryOp.DIV: lambda enc, a, b: enc.z3.fpDiv(enc._rounding, a, b, enc.ctx),
    BinaryOp.MIN: lambda enc, a, b: enc.choice(enc.z3.fpLT(a, b, enc.ctx), a, b),
    BinaryOp.MAX: lambda enc, a, b: enc.choice(enc.z3.fpGT(a, b, enc.ctx), a, b),
}


def _binary(enc: ValueEncoder, expr: Binary) -> Any:
    a, b, dtype = enc.value(expr.lhs), enc.value(expr.rhs), expr.dtype
    if dtype.is_integer and expr.op in _INTEGER:
        return _INTEGER[expr.op](enc, expr.op, a, b, dtype)
    table = _FLOAT if dtype.is_float else _BOOLEAN
    if expr.op not in table:
        raise NotValue(expr, f"`{expr.op}` on {dtype}")
    return table[expr.op](enc, a, b)


# -- comparisons and choices --------------------------------------------------------------------------------------------------


def _compare(enc: ValueEncoder, expr: Compare) -> Any:
    a, b, dtype, z3 = enc.value(expr.lhs), enc.value(expr.rhs), expr.lhs.dtype, enc.z3
    match expr.op:
        case CompareOp.EQ:
            return z3.fpEQ(a, b, enc.ctx) if dtype.is_float else a == b
        case CompareOp.NE:
            return z3.Not(z3.fpEQ(a, b, enc.ctx)) if dtype.is_float else a != b
        case CompareOp.LT | CompareOp.GT:
            x, y = (a, b) if expr.op is CompareOp.LT else (b, a)
            return z3.fpLT(x, y, enc.ctx) if dtype.is_float else _ordered(enc, x, y, dtype)
        case CompareOp.LE | CompareOp.GE:
            x, y = (a, b) if expr.op is CompareOp.LE else (b, a)
            return z3.fpLEQ(x, y, enc.ctx) if dtype.is_float else z3.Not(_ordered(enc, y, x, dtype))


def _ordered(enc: ValueEncoder, a: Any, b: Any, dtype: DType) -> Any:
    return enc.z3.And(enc.z3.Not(a), b) if dtype.is_bool else _less(enc, a, b, dtype)


def _logical(enc: ValueEncoder, expr: Logical) -> Any:
    a = enc.value(expr.lhs)
    if expr.op is LogicalOp.AND:
        return enc.z3.And(a, enc.under(a, expr.rhs))
    return enc.z3.Or(a, enc.under(enc.z3.Not(a), expr.rhs))


def _lazy(enc: ValueEncoder, expr: IfThenElseExpr) -> Any:
    condition = enc.value(expr.condition)
    return enc.choice(condition, enc.under(condition, expr.then), enc.under(enc.z3.Not(condition), expr.otherwise))


# -- conversions and functions ------------------------------------------------------------------------------------------------


def _cast(enc: ValueEncoder, expr: Cast) -> Any:
    source, target, value = expr.value.dtype, expr.dtype, enc.value(expr.value)
    if target.is_bool:
        return value if source.is_bool else enc.z3.Not(enc.z3.fpIsZero(value, enc.ctx)) if source.is_float else value != 0
    if source.is_bool:
        one, zero = ((enc.real(x, target) if target.is_float else enc.integer(int(x), target)) for x in (1.0, 0.0))
        return enc.choice(value, one, zero)
    if target.is_float:
        return _to_float(enc, value, source, target)
    return _to_integer(enc, value, target) if source.is_float else _resize(enc, value, source, target)


def _to_float(enc: ValueEncoder, value: Any, source: DType, target: DType) -> Any:
    z3, sort = enc.z3, enc.sort(target)
    if source.is_float:
        return value if source == target else z3.fpFPToFP(enc._rounding, value, sort, enc.ctx)
    convert = z3.fpSignedToFP if source.kind is Kind.INT else z3.fpUnsignedToFP
    return convert(enc._rounding, value, sort, enc.ctx)


def _to_integer(enc: ValueEncoder, value: Any, target: DType) -> Any:
    z3 = enc.z3
    wide = z3.fpFPToFP(enc._rounding, value, z3.FPSort(11, 53, enc.ctx), enc.ctx) if value.sort().sbits() < 53 else value
    whole = z3.fpRoundToIntegral(z3.RTZ(enc.ctx), wide, enc.ctx)
    # Both bounds are powers of two (or 0), exact in float64; a NaN is within neither.
    low, high = (enc.real(float(x), FLOAT64) for x in (target.min_int, target.max_int + 1))
    enc.trap(z3.Not(z3.And(z3.fpGEQ(whole, low, enc.ctx), z3.fpLT(whole, high, enc.ctx))))
    convert = z3.fpToSBV if target.kind is Kind.INT else z3.fpToUBV
    return convert(z3.RTZ(enc.ctx), wide, z3.BitVecSort(target.bits, enc.ctx), enc.ctx)


def _resize(enc: ValueEncoder, value: Any, source: DType, target: DType) -> Any:
    if target.bits <= source.bits:
        return enc.z3.Extract(target.bits - 1, 0, value)
    extend = enc.z3.SignExt if source.kind is Kind.INT else enc.z3.ZeroExt
    return extend(target.bits - source.bits, value)


def _extreme(enc: ValueEncoder, a: Any, b: Any, *, largest: bool) -> Any:
    """IEEE's maximum and minimum of two numbers that are not NaN: +0 is above -0."""
    z3 = enc.z3
    wins = z3.fpGT(a, b, enc.ctx) if largest else z3.fpLT(a, b, enc.ctx)
    zeros = z3.And(z3.fpIsZero(a, enc.ctx), z3.fpIsZero(b, enc.ctx))
    sign_wins = z3.Not(z3.fpIsNegative(a, enc.ctx)) if largest else z3.fpIsNegative(a, enc.ctx)
    return enc.choice(z3.Or(wins, z3.And(zeros, sign_wins)), a, b)


def _nan_wins(enc: ValueEncoder, a: Any, b: Any, *, largest: bool) -> Any:
    z3 = enc.z3
    nan = z3.Or(z3.fpIsNaN(a, enc.ctx), z3.fpIsNaN(b, enc.ctx))
    return enc.choice(nan, z3.fpNaN(a.sort()), _extreme(enc, a, b, largest=largest))


def _nan_loses(enc: ValueEncoder, a: Any, b: Any, *, largest: bool) -> Any:
    z3 = enc.z3
    other = enc.choice(z3.fpIsNaN(b, enc.ctx), a, _extreme(enc, a, b, largest=largest))
    return enc.choice(z3.fpIsNaN(a, enc.ctx), b, other)


def _rounded(mode: str) -> Callable[..., Any]:
    return lambda enc, x: enc.z3.fpRoundToIntegral(getattr(enc.z3, mode)(enc.ctx), x, enc.ctx)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": lambda enc, x: enc.z3.fpAbs(x, enc.ctx),
    "sqrt": lambda enc, x: enc.z3.fpSqrt(enc._rounding, x, enc.ctx),
    "fma": lambda enc, a, b, c: enc.z3.fpFMA(enc._rounding, a, b, c, enc.ctx),
    "floor": _rounded("RTN"),
    "ceil": _rounded("RTP"),
    "round": _rounded("RNA"),
    "trunc": _rounded("RTZ"),
    "fmax": lambda enc, a, b: _nan_loses(enc, a, b, largest=True),
    "fmin": lambda enc, a, b: _nan_loses(enc, a, b, largest=False),
    "maximum": lambda enc, a, b: _nan_wins(enc, a, b, largest=True),
    "minimum": lambda enc, a, b: _nan_wins(enc, a, b, largest=False),
}


def _call(enc: ValueEncoder, expr: Call) -> Any:
    arguments = [enc.value(a) for a in expr.arguments]
    if expr.dtype.is_integer:
        (value,) = arguments
        # The magnitude of the least number of a signed type wraps around to itself.
        return enc.choice(value < 0, -value, value) if expr.dtype.kind is Kind.INT else value
    known = _FUNCTIONS.get(expr.function)
    if known is not None:
        return known(enc, *arguments)
    name = f"{expr.function}_{expr.dtype}"
    enc.uninterpreted.add(expr.function)
    sorts = [a.sort() for a in arguments]
    return enc.z3.Function(name, *sorts, enc.sort(expr.dtype))(*arguments)


_VALUES: dict[type[Expr], Callable[[ValueEncoder, Any], Any]] = {
    Var: _variable,
    IntImm: _integer,
    FloatImm: lambda enc, e: enc.real(e.value, e.dtype),
    Limit: _limit,
    Binary: _binary,
    Compare: _compare,
    Logical: _logical,
    Not: lambda enc, e: enc.z3.Not(enc.value(e.operand)),
    Select: lambda enc, e: enc.choice(enc.value(e.condition), enc.value(e.then), enc.value(e.otherwise)),
    IfThenElseExpr: _lazy,
    Cast: _cast,
    Call: _call,
}
