"""How far numbers lie apart."""

from __future__ import annotations

import numpy as np
from ml_dtypes import bfloat16

from layoutproof.ir.interp.run import ulps_apart


def test_identity_and_steps() -> None:
    """Distances count the numbers between; a zero's sign is one, a NaN is far from numbers and equal to NaNs."""
    a = np.array([1, 1, 0.0, np.nan, np.nan, -1], dtype=np.float32)
    b = np.array([1, np.nextafter(np.float32(1), np.float32(2)), -0.0, np.nan, 1, 1], dtype=np.float32)
    assert ulps_apart(a, b).tolist()[:4] == [0, 1, 1, 0]
    assert ulps_apart(a, b).min() >= 0 and ulps_apart(a, b)[4] > 1 << 40
    for dtype in (np.float16, np.float64, bfloat16, np.int8, np.int64, np.uint64, np.bool_):
        low, high = (np.array([v], dtype=dtype) for v in (0, 1))
        assert ulps_apart(low, low).tolist() == [0] and ulps_apart(low, high)[0] >= 1


def test_steps_across_zero() -> None:
    """From the least positive number to the greatest negative one there are three steps: past both zeros."""
    tiny = np.array([6e-8, -6e-8], np.float16)
    assert ulps_apart(tiny, tiny[::-1]).tolist() == [3, 3]
