"""The one meaning of division, wrapping, rounding and casts. Every encoder, emitter and evaluator is tested against it.

Index arithmetic is over the integers; value arithmetic of a fixed width wraps. Floats round to nearest, ties to even,
with subnormals, once per operation, in the operation's own type. Part of the trusted computing base.
"""

from __future__ import annotations

import math
import struct

from layoutproof.ir.dtype import DType, Kind


class Trap(Exception):
    """An operation without a result: division by zero, overflowing quotient, shift or float out of range."""


# precision in bits (the hidden one included), exponent of the smallest normal, exponent of the largest finite value
_FORMATS = {
    (Kind.FLOAT, 16): (11, -14, 15),
    (Kind.FLOAT, 32): (24, -126, 127),
    (Kind.FLOAT, 64): (53, -1022, 1023),
    (Kind.BFLOAT, 16): (8, -126, 127),
}


def float_format(dtype: DType) -> tuple[int, int, int]:
    """Precision in bits, least normal exponent and largest exponent of a float type."""
    return _FORMATS[dtype.kind, dtype.bits]


def max_finite(dtype: DType) -> float:
    """The largest finite value of a float type."""
    precision, _, emax = float_format(dtype)
    return math.ldexp((1 << precision) - 1, emax - precision + 1)


def round_float(value: float, dtype: DType) -> float:
    """`value` rounded to the nearest number of `dtype`, ties to even; overflow gives an infinity."""
    precision, emin, emax = float_format(dtype)
    if precision == 53 or value == 0.0 or not math.isfinite(value):
        return value
    mantissa, exponent = math.frexp(value)  # 0.5 <= |mantissa| < 1
    if exponent - 1 > emax:
        return math.copysign(math.inf, value)
    ulp = max(exponent - precision, emin - precision + 1)
    rounded = math.ldexp(_half_even(math.ldexp(mantissa, exponent - ulp)), ulp)
    if abs(rounded) >= math.ldexp(1.0, emax + 1):
        return math.copysign(math.inf, value)
    return math.copysign(rounded, value)


def _half_even(value: float) -> float:
    return float(round(value))  # Python's round() is half to even, and exact on floats


def floordiv(a: int, b: int) -> int:
    """The quotient rounded down. Raises Trap for b == 0."""
    if b == 0:
        raise Trap(f"{a} // 0")
    return a // b


def floormod(a: int, b: int) -> int:
    """The remainder with the sign of the divisor. Raises Trap for b == 0."""
    if b == 0:
        raise Trap(f"{a} % 0")
    return a % b


def truncdiv(a: int, b: int) -> int:
    """The quotient rounded to zero, as C divides. Raises Trap for b == 0."""
    if b == 0:
        raise Trap(f"truncdiv({a}, 0)")
    quotient = abs(a) // abs(b)
    return quotient if (a >= 0) == (b >= 0) else -quotient


def truncmod(a: int, b: int) -> int:
    """The remainder with the sign of the dividend, as C has it. Raises Trap for b == 0."""
    if b == 0:
        raise Trap(f"truncmod({a}, 0)")
    remainder = abs(a) % abs(b)
    return remainder if a >= 0 else -remainder


def wrap(value: int, dtype: DType) -> int:
    """The value that a fixed-width integer (or bool) type holds after `value` was stored to it."""
    if dtype.is_bool:
        return int(value != 0)
    low = value & ((1 << dtype.bits) - 1)
    return low - (1 << dtype.bits) if dtype.kind is Kind.INT and low >> (dtype.bits - 1) else low


def divide(operation: str, a: int, b: int, dtype: DType) -> int:
    """One of the four integer divisions in a fixed width. Raises Trap for a zero divisor and for the overflowing
    INT_MIN by -1.

    The remainder of INT_MIN by -1 traps as well: C leaves it undefined, and so does the hardware that divides and takes
    the rest.
    """
    if b == -1 and dtype.kind is Kind.INT and a == dtype.min_int:
        raise Trap(f"{operation}({a}, -1) overflows {dtype}")
    return {"floordiv": floordiv, "floormod": floormod, "truncdiv": truncdiv, "truncmod": truncmod}[operation](a, b)


def shift_left(a: int, b: int, dtype: DType) -> int:
    """`a << b` in a fixed width. Raises Trap unless 0 <= b < width."""
    if not 0 <= b < dtype.bits:
        raise Trap(f"shift by {b} of a {dtype}")
    return wrap(a << b, dtype)


def shift_right(a: int, b: int, dtype: DType) -> int:
    """`a >> b`, arithmetic for signed types. Raises Trap unless 0 <= b < width."""
    if not 0 <= b < dtype.bits:
        raise Trap(f"shift by {b} of a {dtype}")
    return a >> b


def select_max(a: float, b: float) -> float:
    """`a > b ? a : b`: the second operand when they do not compare (a NaN) and when they are equal."""
    return a if a > b else b


def select_min(a: float, b: float) -> float:
    """`a < b ? a : b`: the second operand when they do not compare (a NaN) and when they are equal."""
    return a if a < b else b


def float_to_int(value: float, dtype: DType) -> int:
    """A float truncated to an integer type. Raises Trap for NaN, infinities and values out of range."""
    if not math.isfinite(value):
        raise Trap(f"{value} to {dtype}")
    result = math.trunc(value)
    if not dtype.min_int <= result <= dtype.max_int:
        raise Trap(f"{value!r} is out of the range of {dtype}")
    return result


def int_to_float(value: int, dtype: DType) -> float:
    """An integer rounded once to a float type: not through float64, which would round twice."""
    precision, _, emax = float_format(dtype)
    magnitude = abs(value)
    excess = magnitude.bit_length() - precision
    if excess > 0:
        low, half = magnitude & ((1 << excess) - 1), 1 << (excess - 1)
        magnitude >>= excess
        magnitude += int(low > half or (low == half and magnitude & 1 == 1))
        magnitude <<= excess
    if magnitude.bit_length() > emax + 1:
        return math.copysign(math.inf, value)
    return float(magnitude) if value >= 0 else -float(magnitude)


_BITS = {16: ("<H", "<e"), 32: ("<I", "<f"), 64: ("<Q", "<d")}


def float_of_bits(value: int, dtype: DType) -> float:
    """The number of a float type that has the bits of an integer of its width; NaNs of all bits are one NaN."""
    bits = value & ((1 << dtype.bits) - 1)
    if dtype.kind is Kind.BFLOAT:
        bits, dtype = bits << 16, DType(Kind.FLOAT, 32)
    whole, number = _BITS[dtype.bits]
    found: float = struct.unpack(number, struct.pack(whole, bits))[0]
    return found if found == found else math.nan


def cast_value(value: int | float, source: DType, target: DType) -> int | float:
    """A value of type `source` converted to `target`, one lane. Raises Trap where the conversion has no result."""
    if target.is_float:
        if source.is_float:
            return round_float(float(value), target)
        return int_to_float(int(value), target)
    if target.is_bool:
        return int(value != 0)
    if source.is_float:
        return float_to_int(float(value), target)
    return wrap(int(value), target)
