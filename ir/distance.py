"""How far two arrays of numbers lie apart, in numbers of their type."""

from __future__ import annotations

import numpy as np

from layoutproof.ir.interp.arguments import Array


def ulps_apart(a: Array, b: Array) -> Array:
    """How many numbers of the type lie between two arrays, cell by cell; 0 for equal bits and for two NaNs.

    The zeros are one apart, and a NaN is as far from a number as can be.
    """
    if a.dtype.kind in "iub":
        return np.abs(a.astype(object) - b.astype(object)).astype(np.uint64) if a.dtype.itemsize == 8 else _integer_distance(a, b)
    ordered_a, ordered_b = _ordered(a), _ordered(b)
    if a.dtype.itemsize == 8:
        distance = np.abs(ordered_a.astype(object) - ordered_b.astype(object)).astype(np.uint64)
    else:
        distance = np.abs(ordered_a - ordered_b).astype(np.uint64)
    nan_a, nan_b = np.isnan(a), np.isnan(b)
    return np.where(nan_a & nan_b, np.uint64(0), np.where(nan_a | nan_b, np.uint64(np.iinfo(np.int64).max), distance))


def _integer_distance(a: Array, b: Array) -> Array:
    return np.abs(a.astype(np.int64) - b.astype(np.int64)).astype(np.uint64)


def _ordered(values: Array) -> Array:
    """Floats as integers in the same order: sign and magnitude turned into one line, -0.0 just below +0.0."""
    width = values.dtype.itemsize
    bits = np.ascontiguousarray(values).view({2: np.int16, 4: np.int32, 8: np.int64}[width]).astype(np.int64)
    magnitude = bits & ((1 << (8 * width - 1)) - 1)
    return np.where(bits < 0, -magnitude - 1, magnitude)
