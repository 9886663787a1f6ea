"""Rounding of whole arrays to any binary float format, ties to even: `semantics.round_float` on many numbers at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutproof.ir.dtype import DType, Kind
from layoutproof.ir.semantics import float_format

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
    """Rounded to `precision` significant bits, with subnormals below `2**emin` and infinities from `2**(emax + 1)` on."""
    finite = np.isfinite(values)
    with np.errstate(all="ignore"):
        mantissa, exponent = np.frexp(np.where(finite, values, 0.0))
        ulp = np.maximum(exponent - precision, emin - precision + 1)
        rounded = np.ldexp(np.rint(np.ldexp(mantissa, exponent - ulp)), ulp)
        rounded = np.where(np.abs(rounded) >= np.ldexp(1.0, emax + 1), np.copysign(np.inf, rounded), rounded)
    return np.where(finite, np.copysign(rounded, values), values)
