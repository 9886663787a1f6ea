"""Data types of expressions and buffer elements: a kind, a width in bits and a number of lanes.

Sources: TVM's RFCs `vectorized-tir-buffers` (lanes are part of the type) and `clarifying-buffer-declaration-and-
access`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_PATTERN = re.compile(r"(?P<kind>bool|handle|bfloat|float|uint|int)(?P<bits>\d+)?(?:x(?P<lanes>\d+))?")
_WIDTHS = {"int": (8, 16, 32, 64), "uint": (8, 16, 32, 64), "float": (16, 32, 64), "bfloat": (16,)}


class Kind(StrEnum):
    """What the bits of one lane mean."""

    BOOL = "bool"
    INT = "int"
    UINT = "uint"
    FLOAT = "float"
    BFLOAT = "bfloat"
    HANDLE = "handle"


@dataclass(frozen=True, slots=True)
class DType:
    """One data type. `bits` is the width of one lane (8 for a stored bool, 64 for a handle); `lanes` is at least 1."""

    kind: Kind
    bits: int
    lanes: int = 1

    def __post_init__(self) -> None:
        if self.lanes < 1:
            raise ValueError(f"a data type needs at least one lane, got {self.lanes}")

    def __hash__(self) -> int:
        # Every expression that is made hashes its type; the text's own hash is kept, an enumeration's is looked up each
        # time.
        return hash((str.__hash__(self.kind), self.bits, self.lanes))

    @staticmethod
    @lru_cache(maxsize=1024)
    def parse(text: str) -> DType:
        """Read `float32`, `int8x4`, `bool`, `bfloat16`, `handle`. Raises ValueError for anything else."""
        match = _PATTERN.fullmatch(text)
        if match is None:
            raise ValueError(f"unknown data type {text!r}")
        kind, lanes = match["kind"], int(match["lanes"] or 1)
        if lanes < 1:
            raise ValueError(f"data type {text!r} has no lanes")
        if kind in ("bool", "handle"):
            if match["bits"]:
                raise ValueError(f"unknown data type {text!r}")
            return DType(Kind(kind), 8 if kind == "bool" else 64, lanes)
        # `float` and `int` without a width mean 32 bits.
        bits = int(match["bits"]) if match["bits"] else 32
        if bits not in _WIDTHS[kind]:
            raise ValueError(f"unknown data type {text!r}")
        return DType(Kind(kind), bits, lanes)

    def __str__(self) -> str:
        width = "" if self.kind in (Kind.BOOL, Kind.HANDLE) else str(self.bits)
        return f"{self.kind.value}{width}" + (f"x{self.lanes}" if self.lanes > 1 else "")

    @property
    def is_integer(self) -> bool:
        """A signed or unsigned integer (bool is neither)."""
        return self.kind in (Kind.INT, Kind.UINT)

    @property
    def is_float(self) -> bool:
        """Any floating-point type, bfloat16 included."""
        return self.kind in (Kind.FLOAT, Kind.BFLOAT)

    @property
    def is_bool(self) -> bool:
        """A truth value, or a vector of them."""
        return self.kind is Kind.BOOL

    @property
    def element(self) -> DType:
        """The same type with one lane."""
        return DType(self.kind, self.bits)

    @property
    def bytes(self) -> int:
        """Size in memory, all lanes."""
        return self.bits // 8 * self.lanes

    def with_lanes(self, lanes: int) -> DType:
        """The same element type with `lanes` lanes."""
        return DType(self.kind, self.bits, lanes)

    @property
    def min_int(self) -> int:
        """Smallest value of an integer or bool type. Raises ValueError for others."""
        match self.kind:
            case Kind.INT:
                return -(1 << (self.bits - 1))
            case Kind.UINT | Kind.BOOL:
                return 0
            case _:
                raise ValueError(f"{self} is not an integer type")

    @property
    def max_int(self) -> int:
        """Largest value of an integer or bool type. Raises ValueError for others."""
        match self.kind:
            case Kind.INT:
                return (1 << (self.bits - 1)) - 1
            case Kind.UINT:
                return (1 << self.bits) - 1
            case Kind.BOOL:
                return 1
            case _:
                raise ValueError(f"{self} is not an integer type")


BOOL = DType(Kind.BOOL, 8)
INT8 = DType(Kind.INT, 8)
INT16 = DType(Kind.INT, 16)
INT32 = DType(Kind.INT, 32)
INT64 = DType(Kind.INT, 64)
UINT8 = DType(Kind.UINT, 8)
UINT16 = DType(Kind.UINT, 16)
UINT32 = DType(Kind.UINT, 32)
UINT64 = DType(Kind.UINT, 64)
FLOAT16 = DType(Kind.FLOAT, 16)
FLOAT32 = DType(Kind.FLOAT, 32)
FLOAT64 = DType(Kind.FLOAT, 64)
BFLOAT16 = DType(Kind.BFLOAT, 16)
HANDLE = DType(Kind.HANDLE, 64)


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """The numpy type of one lane; bfloat16 is from ml_dtypes. Raises ValueError for handles, which are not stored."""
    # Loaded late: a proof that is known already needs no numpy.
    import ml_dtypes
    import numpy as np

    if dtype.is_bool:
        return np.dtype(np.bool_)
    if dtype.kind is Kind.BFLOAT:
        found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return found
    if dtype.is_integer or dtype.is_float:
        return np.dtype(str(dtype.element))
    raise ValueError(f"numpy has no {dtype}")
