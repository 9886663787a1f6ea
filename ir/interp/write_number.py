"""Arithmetic as generated source: integers that fit or wrap, floats rounded once, comparisons, casts."""

from __future__ import annotations

import math

from layoutproof.ir import semantics
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import BinaryOp, CompareOp
from layoutproof.ir.interp.generator import Generator, Operand, join_taints, limits_of, literal


def fit(g: Generator, operand: Operand, dtype: DType, index: bool) -> Operand:
    """An exact integer result brought to its type: checked for index arithmetic, wrapped for values; free where its range fits."""
    low, high = limits_of(dtype)
    if low <= operand.low and operand.high <= high:
        return g.short(operand)
    if index:
        result = g.atom(operand)
        g.emit(f"if not {low} <= {result.code} <= {high}: overflow({result.code}, {str(dtype)!r})")
        return Operand(result.code, max(low, operand.low), min(high, operand.high), operand.taint)
    mask = (1 << dtype.bits) - 1
    code = f"(({operand.code} + {-low} & {mask}) - {-low})" if low < 0 else f"({operand.code} & {mask})"
    return g.short(Operand(code, low, high, operand.taint))


def integer_constant(value: int) -> Operand:
    """A known integer."""
    return Operand(literal(value), value, value)


def integer_binary(g: Generator, op: BinaryOp, a: Operand, b: Operand, dtype: DType, index: bool) -> Operand:
    """`a op b` on integers of one type."""
    taint = join_taints(a, b)
    match op:
        case BinaryOp.ADD:
            exact = _simple(f"({a.code} + {b.code})", a.low + b.low, a.high + b.high, taint)
        case BinaryOp.SUB:
            exact = _simple(f"({a.code} - {b.code})", a.low - b.high, a.high - b.low, taint)
        case BinaryOp.MUL:
            corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
            exact = _simple(f"({a.code} * {b.code})", min(corners), max(corners), taint)
        case BinaryOp.MIN | BinaryOp.MAX:
            a, b = g.atom(a), g.atom(b)
            sign, pick = ("<", min) if op is BinaryOp.MIN else (">", max)
            exact = Operand(f"({a.code} if {a.code} {sign} {b.code} else {b.code})", pick(a.low, b.low), pick(a.high, b.high), taint)
        case BinaryOp.BITAND | BinaryOp.BITOR | BinaryOp.BITXOR:
            exact = Operand(f"({a.code} {op} {b.code})", *_bitwise_range(op, a, b, dtype), taint)
        case BinaryOp.SHL | BinaryOp.SHR:
            return _shift(g, op, a, b, dtype, index, taint)
        case _:
            return _divide(g, op, a, b, dtype, taint)
    return fit(g, exact, dtype, index)


def _simple(code: str, low: int, high: int, taint: str | None) -> Operand:
    return integer_constant(low) if low == high and taint is None else Operand(code, low, high, taint)


def _bitwise_range(op: BinaryOp, a: Operand, b: Operand, dtype: DType) -> tuple[int, int]:
    if dtype.is_bool:
        return 0, 1
    if a.low < 0 or b.low < 0:
        return limits_of(dtype)
    if op is BinaryOp.BITAND:
        return 0, min(a.high, b.high)
    return 0, (1 << max(a.high.bit_length(), b.high.bit_length())) - 1


def _shift(g: Generator, op: BinaryOp, a: Operand, b: Operand, dtype: DType, index: bool, taint: str | None) -> Operand:
    a, b = g.atom(a), g.atom(b)
    if not (b.low >= 0 and b.high < dtype.bits):
        g.emit(f"if not 0 <= {b.code} < {dtype.bits}: bad_shift({b.code}, {str(dtype)!r})")
    amounts = [min(max(s, 0), dtype.bits - 1) for s in (b.low, b.high)]
    corners = [x << s if op is BinaryOp.SHL else x >> s for x in (a.low, a.high) for s in amounts]
    return fit(g, Operand(f"({a.code} {op} {b.code})", min(corners), max(corners), taint), dtype, index)


def _divide(g: Generator, op: BinaryOp, a: Operand, b: Operand, dtype: DType, taint: str | None) -> Operand:
    """The four divisions; in line where the divisor is known to be positive and the operands make floor and trunc alike."""
    truncated = op in (BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD)
    division = op in (BinaryOp.FLOORDIV, BinaryOp.TRUNCDIV)
    if b.low < 1 or (truncated and a.low < 0):
        name = {"//": "floordiv", "%": "floormod"}.get(op.value, op.value)
        return Operand(g.temp(f"divide({name!r}, {a.code}, {b.code}, {g.constant(dtype)})"), *limits_of(dtype), taint)
    if division:
        corners = [x // y for x in (a.low, a.high) for y in (b.low, b.high)]
        return g.short(_simple(f"({a.code} // {b.code})", min(corners), max(corners), taint))
    if 0 <= a.low and a.high < b.low:
        return Operand(a.code, a.low, a.high, taint)
    high = min(b.high - 1, a.high) if a.low >= 0 else b.high - 1
    return g.short(_simple(f"({a.code} % {b.code})", 0, high, taint))


def rounded(g: Generator, code: str, dtype: DType, taint: str | None) -> Operand:
    """A float64 result rounded to `dtype`."""
    match str(dtype.element):
        case "float64":
            return g.short(Operand(code, taint=taint))
        case "float32":
            g.emit(f"r32[0] = {code}")
            return Operand(g.temp("r32[0]"), taint=taint)
        case "float16":
            g.emit(f"r16[0] = {code}")
            return Operand(g.temp("r16.item()"), taint=taint)
        case _:
            return Operand(g.temp(f"round_float({code}, {g.constant(dtype.element)})"), taint=taint)


def float_binary(g: Generator, op: BinaryOp, a: Operand, b: Operand, dtype: DType) -> Operand:
    """`a op b` on floats of one type."""
    taint = join_taints(a, b)
    match op:
        case BinaryOp.ADD | BinaryOp.SUB | BinaryOp.MUL:
            return rounded(g, f"({a.code} {op} {b.code})", dtype, taint)
        case BinaryOp.DIV:
            return rounded(g, f"float_div({a.code}, {b.code})", dtype, taint)
        case BinaryOp.MIN | BinaryOp.MAX:
            a, b = g.atom(a), g.atom(b)
            sign = "<" if op is BinaryOp.MIN else ">"
            return g.short(Operand(f"({a.code} if {a.code} {sign} {b.code} else {b.code})", taint=taint))
        case _:
            raise TypeError(f"{op} on {dtype}")


def comparison(g: Generator, op: CompareOp, a: Operand, b: Operand, ordered: bool) -> Operand:
    """`a op b` as a truth value; decided here where the ranges of integers (`ordered`) decide it."""
    known = _decide(op, a, b) if ordered else None
    if known is not None:
        return Operand(str(known), int(known), int(known), join_taints(a, b))
    return g.short(Operand(f"({a.code} {op} {b.code})", 0, 1, join_taints(a, b)))


def _decide(op: CompareOp, a: Operand, b: Operand) -> bool | None:
    below, above = a.high < b.low, a.low > b.high
    same = a.constant is not None and a.constant == b.constant
    match op:
        case CompareOp.EQ:
            return True if same else False if below or above else None
        case CompareOp.NE:
            return False if same else True if below or above else None
        case CompareOp.LT:
            return True if below else False if a.low >= b.high else None
        case CompareOp.LE:
            return True if a.high <= b.low else False if above else None
        case CompareOp.GT:
            return True if above else False if a.high <= b.low else None
        case CompareOp.GE:
            return True if a.low >= b.high else False if below else None


def truth(value: bool) -> Operand:
    """A known truth value."""
    return Operand(str(value), int(value), int(value))


def float_constant(value: float) -> Operand:
    """A known float."""
    if math.isfinite(value):
        return Operand(f"({value!r})" if math.copysign(1.0, value) < 0 else repr(value))
    return Operand("nan" if value != value else "inf" if value > 0 else "(-inf)")


def cast(g: Generator, value: Operand, source: DType, target: DType, index: bool) -> Operand:
    """One lane converted (`semantics.cast_value`); an integer that changes is an overflow where it is index arithmetic."""
    if target.is_float:
        if source.is_float:
            wider = semantics.float_format(source)[0] <= semantics.float_format(target)[0] and source.bits < target.bits
            return value if source == target or wider else rounded(g, value.code, target, value.taint)
        if source.bits <= 32:
            return rounded(g, f"float({value.code})", target, value.taint)
        return Operand(g.temp(f"int_to_float({value.code}, {g.constant(target)})"), taint=value.taint)
    if target.is_bool:
        return value if source.is_bool else Operand(f"({value.code} != 0)", 0, 1, value.taint)
    if source.is_float:
        return Operand(g.temp(f"float_to_int({value.code}, {g.constant(target)})"), *limits_of(target), value.taint)
    if source.is_bool:
        return Operand(f"int({value.code})", 0, 1, value.taint)
    return fit(g, value, target, index)
