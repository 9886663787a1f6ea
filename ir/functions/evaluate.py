"""Sequences run in Python: on one number, or on an array of them. Nothing here computes but the text that `text.py` writes."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutproof.ir.functions.definitions import DEFINITIONS
from layoutproof.ir.functions.text import NUMPY, PYTHON, Spelling, result_name, statements

_DOUBLE, _WORD = struct.Struct("<d"), struct.Struct("<Q")


def _bits(x: float) -> int:
    return int(_WORD.unpack(_DOUBLE.pack(x))[0])


def _number(word: int) -> float:
    return float(_DOUBLE.unpack(_WORD.pack(word))[0])


def _root(x: float) -> float:
    return math.sqrt(x) if x >= 0.0 else math.nan


def _divided(a: float, b: float) -> float:
    """IEEE division; of the quotients by zero."""
    if b != 0.0:
        return a / b
    return math.nan if a == 0.0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)


_ON_NUMBERS: Mapping[str, Any] = {"bits": _bits, "number": _number, "root": _root, "divided": _divided, "copysign": math.copysign}
_ON_ARRAYS: Mapping[str, Any] = {
    "bits": lambda x: np.asarray(x, dtype=np.float64).view(np.uint64),
    "number": lambda x: np.asarray(x, dtype=np.uint64).view(np.float64),
    "root": np.sqrt,
    "copysign": np.copysign,
    "where": np.where,
    "word": np.uint64,
}


def _compiled(name: str, spelling: Spelling, names: Mapping[str, Any]) -> Callable[[Any], Any]:
    sequence = DEFINITIONS[name].sequence
    lines = [f"def {name}(x):", *(f"    {line}" for line in statements(sequence, spelling, "x")), f"    return {result_name(sequence)}"]
    scope = dict(names)
    exec(compile("\n".join(lines), f"<{name}>", "exec"), scope)  # text of our own making
    found: Callable[[Any], Any] = scope[name]
    return found


@lru_cache(maxsize=64)
def function(name: str) -> Callable[[float], float]:
    """The sequence of a function on one number, a NaN where it gives one."""
    return _compiled(name, PYTHON, _ON_NUMBERS)


@lru_cache(maxsize=64)
def array_function(name: str) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """The sequence of a function on each element of an array."""
    on_arrays = _compiled(name, NUMPY, _ON_ARRAYS)

    def call(x: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(all="ignore"):
            return np.asarray(on_arrays(np.asarray(x, dtype=np.float64)), dtype=np.float64)

    return call
