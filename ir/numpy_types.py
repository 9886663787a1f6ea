"""How elements look to numpy: the one map from data types to numpy's."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from layoutproof.ir.dtype import DType, Kind


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """The numpy type of one lane; bfloat16 is that of ml_dtypes. Raises ValueError for handles, which are not stored."""
    if dtype.is_bool:
        return np.dtype(np.bool_)
    if dtype.kind is Kind.BFLOAT:
        found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return found
    if dtype.is_integer or dtype.is_float:
        return np.dtype(str(dtype.element))
    raise ValueError(f"numpy has no {dtype}")
