"""The math functions of float16, bfloat16 and float32: each one sequence of float64 operations that is rounded to the
type, with a table of the arguments at which that rounding is wrong; and the sequences compiled for Python numbers and
arrays.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from collections.abc import Sequence as Numbers
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutproof.ir.functions import coefficients as c
from layoutproof.ir.functions.sequence import (
    NUMPY,
    PYTHON,
    Line,
    Sequence,
    Spelling,
    Term,
    Word,
    result_name,
    statements,
)


def _pairs(text: str) -> tuple[tuple[float, float], ...]:
    numbers = [float.fromhex(word) for word in text.split()]
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))


HARD: Mapping[str, tuple[tuple[float, float], ...]] = {
    "exp2": _pairs("0x1.853a6ep-9 0x1.00870ap+0  -0x1.e7526ep-6 0x1.f58d62p-1"),
    "log": _pairs(
        "0x1.827a74p-7 -0x1.1c2b1ep+2  0x1.2f1fd6p+3 0x1.1fcbcep+1  0x1.bacb4ap+25 0x1.1e0696p+4"
        "  0x1.b121a6p+76 0x1.a9a3f2p+5  0x1.6351d8p+95 0x1.08b512p+6"
    ),
    "sigmoid": _pairs("-0x1.250c02p-10 0x1.ffb6bep-2"),
    "sinh": _pairs("0x1.250bfep-11 0x1.250bfep-11  -0x1.250bfep-11 -0x1.250bfep-11"),
    "atan": _pairs("0x1.1ad646p-4 0x1.1a6386p-4  -0x1.1ad646p-4 -0x1.1a6386p-4"),
}


_MAGIC = 1.5 * 2.0**52
"""Added to a small number, this leaves the nearest integer in the low bits; taken away again, that integer as a number.
"""

_FRACTION = 0x000FFFFFFFFFFFFF
_ONE = 0x3FF0000000000000
_TWO_52 = 0x4330000000000000
_ROOT_HALF = 0x3FE6A09E00000000
"""The bits of a number just below the square root of 1/2."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A function: its sequence, valid up to a magnitude (None: any); beyond, the C library's float64 function."""

    name: str
    sequence: Sequence
    limit: float | None = None


def polynomial(x: Term, numbers: Numbers[float]) -> Term:
    """The value at `x` by Horner's rule; `numbers` begins with the constant."""
    found: Term | float = numbers[-1]
    for number in reversed(numbers[:-1]):
        found = x * found + number
    assert isinstance(found, Term)
    return found


def _nearest(x: Term) -> tuple[Term, Term]:
    """The nearest integer to a small number, and the number that has it in its low bits."""
    shifted = x + _MAGIC
    return shifted - _MAGIC, shifted


def _power_of_two(shifted: Term) -> Term:
    """2 to the integer in the low bits."""
    return ((shifted.bits << 52) + _ONE).number


def _clamped(x: Term, low: float, high: float) -> Term:
    """`x`, or the bound that it is beyond; a NaN stays."""
    return x.below(low, low, x.above(high, high, x))


def _exp_parts(x: Term) -> tuple[Term, Term]:
    """exp(x) as `scale * (1 + part)`: a power of two, and a number within 0.42 of zero with its digits kept."""
    k, shifted = _nearest(x * c.LOG2E[0])
    r = (x - k * c.LN2[0]) - k * c.LN2[1]
    return _power_of_two(shifted), r + r * r * polynomial(r, c.EXP)


def _exp_of(x: Term) -> Term:
    scale, part = _exp_parts(x)
    return scale * (part + 1.0)


def _expm1_of(x: Term) -> Term:
    """exp(x) - 1, with its digits near zero, for x of zero and more."""
    scale, part = _exp_parts(x)
    return (scale - 1.0) + scale * part


def _exp(x: Term) -> Term:
    return _exp_of(_clamped(x, -120.0, 100.0))


def _exp2(x: Term) -> Term:
    near = _clamped(x, -170.0, 130.0)
    k, shifted = _nearest(near)
    r = near - k
    return _power_of_two(shifted) * (r * polynomial(r, c.EXP2) + 1.0)


def _log_parts(x: Term) -> tuple[Term, Term, Term]:
    """`k`, `f` and `e` with x = 2**k * (1 + f) and log(1 + f) = f - e; f is exact and at most 0.42."""
    shifted = x.bits - _ROOT_HALF
    exponent = shifted + (1024 << 52) >> 52
    k = (exponent | _TWO_52).number - float((1 << 52) + 1024)
    f = ((shifted & _FRACTION) + _ROOT_HALF).number - 1.0
    s = f / (f + 2.0)
    w = s * s
    return k, f, s * (f - w * polynomial(w, c.LOG))


def _ends_of_log(x: Term, y: Term) -> Term:
    """The logarithm at zero, infinity and below zero; NaN stays."""
    return x.equal(0.0, -_INFINITY, x.below(0.0, _NAN, x.below(_INFINITY, y, x)))


_INFINITY = float("inf")
_NAN = float("nan")


def _log(x: Term) -> Term:
    k, f, e = _log_parts(x)
    return _ends_of_log(x, k * c.LN2[0] - ((e - k * c.LN2[1]) - f))


def _log2(x: Term) -> Term:
    k, f, e = _log_parts(x)
    high, low = c.LOG2E_PARTS
    return _ends_of_log(x, (k + f * high) + (f * low - e * c.LOG2E[0]))


def _log10(x: Term) -> Term:
    k, f, e = _log_parts(x)
    high, low = c.LOG10E_PARTS
    return _ends_of_log(x, (k * c.LOG10_2[0] + f * high) + ((f * low - e * (high + low)) + k * c.LOG10_2[1]))


def _rsqrt(x: Term) -> Term:
    return 1.0 / x.sqrt()


def _tanh(x: Term) -> Term:
    u = _expm1_of(_at_most(abs(x), 10.0) * 2.0)
    return (u / (u + 2.0)).signed_like(x)


def _at_most(x: Term, high: float) -> Term:
    return x.above(high, high, x)


def _sigmoid(x: Term) -> Term:
    far = 1.0 / (_exp_of(_clamped(x * -1.0, -120.0, 120.0)) + 1.0)
    # 1/2 + x/4 can be halfway between two float32 numbers, and the rest of the series too small to show: the factor
    # stands for it
    near = x * (0.25 - 2.0**-29) + 0.5
    return abs(x).below(2.0**-15, near, far)


def _sinh(x: Term) -> Term:
    u = _expm1_of(_at_most(abs(x), 100.0))
    return ((u + u / (u + 1.0)) * 0.5).signed_like(x)


def _cosh(x: Term) -> Term:
    u = _expm1_of(_at_most(abs(x), 100.0))
    return u * u / (u * 2.0 + 2.0) + 1.0


def _erf(x: Term) -> Term:
    a = _at_most(abs(x), 4.0)
    return a.below(1.0, a * polynomial(a * a, c.ERF_NEAR), polynomial(a - 2.5, c.ERF_FAR)).signed_like(x)


def _atan(x: Term) -> Term:
    a = abs(x)
    low, high = 0.4140625, 2.4140625
    top = a.below(low, a, a.below(high, a - 1.0, -1.0))
    bottom = a.below(low, 1.0, a.below(high, a + 1.0, a))
    base = a.below(low, 0.0, a.below(high, c.QUARTER_PI_PARTS[0], c.HALF_PI_PARTS[0]))
    rest = a.below(low, 0.0, a.below(high, c.QUARTER_PI_PARTS[1], c.HALF_PI_PARTS[1]))
    t = top / bottom
    w = t * t
    return (base + (t + (t * w * polynomial(w, c.ATAN) + rest))).signed_like(x)


def _quadrant(x: Term) -> tuple[Term, Term, Word]:
    """The sine and cosine of the distance to the nearest multiple of pi / 2, and the low bits of its number."""
    k, shifted = _nearest(x * c.TWO_OVER_PI[0])
    whole = (x - k * c.HALF_PI[0]) - k * c.HALF_PI[1]
    rest = k * c.HALF_PI[2]
    r = whole - rest
    lost = (whole - r) - rest
    w = r * r
    sine = r + (r * w * polynomial(w, c.SIN) + lost)
    half = w * 0.5
    first = 1.0 - half
    cosine = first + (((1.0 - first) - half) + (w * w * polynomial(w, c.COS) - r * lost))
    return sine, cosine, shifted.bits


def _swapped(quadrant: Word, even: Term, odd: Term) -> Word:
    """The bits of one of two numbers, by the parity of a quadrant."""
    mask = (quadrant & 1) + 0xFFFFFFFFFFFFFFFF
    return (even.bits & mask) | (odd.bits & (mask ^ 0xFFFFFFFFFFFFFFFF))


def _sin(x: Term) -> Term:
    sine, cosine, quadrant = _quadrant(abs(x))
    unsigned = _swapped(quadrant, sine, cosine) ^ ((quadrant & 2) << 62)
    return (unsigned ^ (x.bits & (1 << 63))).number


def _cos(x: Term) -> Term:
    sine, cosine, quadrant = _quadrant(abs(x))
    return (_swapped(quadrant, cosine, sine) ^ (((quadrant + 1) & 2) << 62)).number


def _tan(x: Term) -> Term:
    sine, cosine, quadrant = _quadrant(abs(x))
    top = _swapped(quadrant, sine, cosine) ^ (x.bits & (1 << 63))
    return top.number / (_swapped(quadrant, cosine, sine) ^ ((quadrant & 1) << 63)).number


_LINES: Mapping[str, Callable[[Term], Term]] = {
    "exp": _exp,
    "exp2": _exp2,
    "log": _log,
    "log2": _log2,
    "log10": _log10,
    "rsqrt": _rsqrt,
    "tanh": _tanh,
    "sigmoid": _sigmoid,
    "sinh": _sinh,
    "cosh": _cosh,
    "erf": _erf,
    "atan": _atan,
    "sin": _sin,
    "cos": _cos,
    "tan": _tan,
}

_LIMITS: Mapping[str, float] = {"sin": 2.0**20, "cos": 2.0**20, "tan": 2.0**20}


def _define(name: str, body: Callable[[Term], Term]) -> Definition:
    line = Line()
    x = line.argument
    result = body(x)
    for argument, value in HARD.get(name, ()):
        result = x.equal(argument, value, result)
    return Definition(name, line.finish(result), _LIMITS.get(name))


DEFINITIONS: Mapping[str, Definition] = {name: _define(name, body) for name, body in _LINES.items()}


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


_ON_NUMBERS: Mapping[str, Any] = {
    "bits": _bits,
    "number": _number,
    "root": _root,
    "divided": _divided,
    "copysign": math.copysign,
}
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
    lines = [
        f"def {name}(x):",
        *(f"    {line}" for line in statements(sequence, spelling, "x")),
        f"    return {result_name(sequence)}",
    ]
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
