"""Types, edge values, and arrays of them: what random programs are made of and run on."""

from __future__ import annotations

from random import Random
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float16", "bfloat16", "float32", "float64")
TYPES = ("bool", *INTEGERS, *FLOATS)

# Largest finite value, smallest normal and smallest subnormal number.
_EDGES = {
    "float16": (65504.0, 2.0**-14, 2.0**-24),
    "bfloat16": (3.3895313892515355e38, 2.0**-126, 2.0**-133),
    "float32": (3.4028234663852886e38, 2.0**-126, 2.0**-149),
    "float64": (1.7976931348623157e308, 2.0**-1022, 2.0**-1074),
}


def bits_of(dtype: str) -> int:
    """The width of a type in bits; bool is stored as one byte and has one."""
    return 1 if dtype == "bool" else int(dtype.removeprefix("b").lstrip("uintfloa"))


def limits_of(dtype: str) -> tuple[int, int]:
    """The least and the largest value of an integer type."""
    bits = bits_of(dtype)
    return (0, 2**bits - 1) if dtype in UNSIGNED else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def numpy_type(dtype: str) -> np.dtype[Any]:
    """How numpy names a type."""
    return np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)


def edge_integer(dtype: str, rng: Random) -> int:
    """An integer of a type, often at the end of its range."""
    low, high = limits_of(dtype)
    near = rng.choice([low, low + 1, high, high - 1, 0, 1, max(low, -1), 2, 3, max(low, -7), high // 2, high // 2 + 1])
    return near if rng.random() < 0.6 else rng.randint(low, high)


def edge_float(dtype: str, rng: Random) -> float:
    """A float of a type: a special value, a subnormal, a tie, or a plain number."""
    largest, normal, least = _EDGES[dtype]
    special = [
        0.0,
        -0.0,
        float("inf"),
        float("-inf"),
        float("nan"),
        largest,
        -largest,
        normal,
        -normal,
        least,
        -least,
        3 * least,
    ]
    plain = [1.0, -1.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 3.0, -7.0, 100.25, normal * 1.5, 2.0 ** rng.randint(-20, 20)]
    return rng.choice(special if rng.random() < 0.4 else plain) if rng.random() < 0.7 else rng.gauss(0, 4)


def small_integer(dtype: str, rng: Random) -> int:
    """An integer near zero."""
    return rng.randint(0 if dtype in UNSIGNED else -9, 9)


def literal(dtype: str, rng: Random) -> str:
    """A number of a type as the script has it: `T.int8(-128)`, `T.float32("nan")`."""
    if dtype == "bool":
        return rng.choice(["T.bool(True)", "T.bool(False)"])
    if dtype in INTEGERS:
        whole = small_integer(dtype, rng) if rng.random() < 0.6 else edge_integer(dtype, rng)
        # TVM's script reads no literal above the largest int64.
        return f"T.{dtype}({min(whole, 2**63 - 1)})"
    with np.errstate(over="ignore"):
        value = float(np.array(edge_float(dtype, rng)).astype(numpy_type(dtype)))
    if value != value or value in (float("inf"), float("-inf")):
        return f'T.{dtype}("{value}")'
    # TVM's script reads no literal above the largest float32, whatever its type.
    value = min(max(value, -_EDGES["float32"][0]), _EDGES["float32"][0])
    return f"T.{dtype}({value!r})"


def random_array(dtype: str, shape: tuple[int, ...], rng: Random, edges: float) -> Array:
    """An array whose elements are edge values with a probability, else plain small numbers."""
    count = int(np.prod(shape, dtype=np.int64))
    kind = numpy_type(dtype)
    if dtype == "bool":
        return np.array([rng.random() < 0.5 for _ in range(count)], dtype=kind).reshape(shape)
    if dtype in INTEGERS:
        whole = [edge_integer(dtype, rng) if rng.random() < edges else small_integer(dtype, rng) for _ in range(count)]
        return np.array(whole, dtype=kind).reshape(shape)
    plain = [
        edge_float(dtype, rng) if rng.random() < edges else rng.choice([rng.gauss(0, 3), rng.randint(-4, 4)])
        for _ in range(count)
    ]
    with np.errstate(over="ignore", invalid="ignore"):
        return np.array(plain, dtype=np.float64).astype(kind).reshape(shape)
