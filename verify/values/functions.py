"""Exact functions of numbers at many points at once: what enumeration takes a named function to compute.

Written apart from the interpreter, which is to find what is wrong here; the tests compare the two. Functions that have no exact meaning
(`exp`, `pow`) are not here: a claim that calls one is tried at points, and never proved by them. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutproof.ir.dtype import DType
from layoutproof.verify.values.rounding import Floats, round_array

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
    return np.array([_of_doubles(*row) for row in zip(a.tolist(), b.tolist(), c.tolist(), plain.tolist(), strict=True)], dtype=np.float64)


def _to_odd(a: Floats, b: Floats) -> Floats:
    """The sum, inexact ones rounded to the neighbour with an odd last bit: a further rounding, to 51 bits or fewer, is then as if there
    had been one only (Boldo and Melquiond 2008). The rest of a sum is exact (Knuth's two-sum), since nothing here is near overflow: a
    product of two numbers of 24 bits is exact, and far inside float64's range.
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
