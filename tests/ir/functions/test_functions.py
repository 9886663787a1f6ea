"""Math functions are correctly rounded: all numbers of the half-precision types, a slice of float32, and every hard
argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from tests.ir.functions import exhaustive
from tests.shares import one_in

from layoutproof.ir.dtype import BFLOAT16, FLOAT16, FLOAT32, DType, numpy_dtype
from layoutproof.ir.functions.definitions import DEFINITIONS, HARD, array_function, function
from layoutproof.ir.functions.sequence import PYTHON, C, Sequence, statements
from layoutproof.ir.interp.runtime import LIBRARY, call_math, round_scaled
from layoutproof.ir.semantics import round_float
from layoutproof.verify.values.law_table import POINTS
from layoutproof.verify.values.numbers import round_array

mp = mpmath.MPContext()
mp.prec = 160
NAMES = tuple(DEFINITIONS)
_COMPOSED: dict[str, Callable[[Any], Any]] = {
    "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "rsqrt": lambda x: 1 / mp.sqrt(x),
    "exp2": lambda x: mp.power(2, x),
    "log2": lambda x: mp.log(x) / mp.log(2),
}


def right(name: str, x: float, dtype: DType) -> float:
    """The correctly rounded value at a finite argument at which a function is defined: from 160 bits, once."""
    exact = (_COMPOSED[name] if name in _COMPOSED else getattr(mp, name))(mp.mpf(x))
    if exact == 0:
        return math.copysign(0.0, x)
    number, exponent = int(exact.man), int(exact.exp)
    extra = number.bit_length() - 64
    if extra > 0:  # to odd, which keeps what a second rounding looks at
        number, exponent = (number >> extra) | (number & ((1 << extra) - 1) != 0), exponent + extra
    return round_scaled(int(mp.sign(exact)) * abs(number), exponent, dtype)


def defined(name: str, x: float) -> bool:
    """Whether a function has a finite value or a limit of its own at a finite argument."""
    limit = DEFINITIONS[name].limit
    return (
        math.isfinite(x)
        and (x > 0 or not (name.startswith("log") or name == "rsqrt"))
        and (limit is None or abs(x) <= limit)
    )


def random_numbers(seed: int, count: int) -> np.ndarray[Any, Any]:
    """float32 numbers of random bits, as float64."""
    with np.errstate(invalid="ignore"):
        return (
            np.random.default_rng(seed).integers(0, 1 << 32, count, dtype=np.uint32).view(np.float32).astype(np.float64)
        )


def every(dtype: DType) -> np.ndarray[Any, Any]:
    """All numbers of a half-precision type."""
    with np.errstate(invalid="ignore"):
        return np.arange(1 << 16, dtype=np.uint16).view(numpy_dtype(dtype)).astype(np.float64)


@one_in(14)
@pytest.mark.parametrize("dtype", [FLOAT16, BFLOAT16], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_every_half(name: str, dtype: DType) -> None:
    """Near a middle 160 bits decide; elsewhere the library's float64 result, give or take a little, rounds to one
    number.
    """
    numbers = every(dtype)
    limit = DEFINITIONS[name].limit
    x = numbers if limit is None else numbers[~(np.abs(numbers) > limit)]
    found = round_array(array_function(name)(x), dtype)
    library = np.array([LIBRARY[name](float(v)) for v in x])
    with np.errstate(all="ignore"):
        low, high = (round_array(library * factor, dtype) for factor in (1 - 2.0**-40, 1 + 2.0**-40))
    near = np.flatnonzero((low != high) & ~np.isnan(library))
    wanted = round_array(library, dtype)
    wanted[near] = [right(name, float(v), dtype) for v in x[near]]
    same = (found == wanted) & (np.signbit(found) == np.signbit(wanted)) | np.isnan(found) & np.isnan(wanted)
    assert x[~same].tolist() == [] and len(near) < 20_000


@one_in(4)
@pytest.mark.parametrize("name", NAMES)
def test_a_slice_of_float32(name: str) -> None:
    """Random numbers of all magnitudes have the value that 160 bits round to."""
    generator = np.random.default_rng(7)
    numbers = random_numbers(7, 1500)
    near = generator.uniform(-20, 20, 1500).astype(np.float32).astype(np.float64)
    for x in (*numbers.tolist(), *near.tolist()):
        if defined(name, x) and not (name in ("exp", "exp2", "sinh", "cosh", "sigmoid") and abs(x) > 200):
            assert call_math(name, (x,), FLOAT32) == right(name, x, FLOAT32), x


@pytest.mark.parametrize("name", NAMES)
def test_one_meaning(name: str) -> None:
    """A sequence on numbers and on arrays of them has the same bits."""
    x = random_numbers(3, 3000)
    one = np.array([function(name)(float(v)) for v in x])
    many = array_function(name)(x)
    assert ((one.view(np.uint64) == many.view(np.uint64)) | (np.isnan(one) & np.isnan(many))).all()


@pytest.mark.parametrize(
    ("name", "x", "value"), [(name, x, value) for name, pairs in HARD.items() for x, value in pairs]
)
def test_hard_arguments(name: str, x: float, value: float) -> None:
    """What stands in the table is right, and the sequence without it is not."""
    assert call_math(name, (x,), FLOAT32) == value == right(name, x, FLOAT32)
    steps = DEFINITIONS[name].sequence.steps
    plain = Sequence(steps[: len(steps) - len(HARD[name])])
    assert len(list(statements(plain, PYTHON, "x"))) == len(list(statements(plain, C, "x"))) < len(steps)
    scope: dict[str, Any] = dict(function(name).__globals__)
    exec("\n".join(statements(plain, PYTHON, repr(x))), scope)
    assert round_float(scope[f"v{len(plain.steps)}"], FLOAT32) != value


@pytest.mark.parametrize("dtype", [FLOAT16, BFLOAT16, FLOAT32], ids=str)
def test_points_that_proofs_use(dtype: DType) -> None:
    """Every exact point that is an axiom of proofs is true of the definitions, and NaN gives NaN."""
    for name, points in POINTS.items():
        for argument, value in points:
            found = float(call_math(name, (argument,), dtype))
            assert found == value and math.copysign(1.0, found) == math.copysign(1.0, value), (name, argument)
        assert math.isnan(float(call_math(name, (math.nan,), dtype)))


@pytest.mark.parametrize("name", [name for name in NAMES if DEFINITIONS[name].limit is not None])
def test_large_arguments_are_the_library_s(name: str) -> None:
    """Beyond its limit a function is the C library's on float64, rounded."""
    for x in (2.0**20 + 1.0, -3e7, 1e30):
        assert call_math(name, (round_float(x, FLOAT32),), FLOAT32) == round_float(
            LIBRARY[name](round_float(x, FLOAT32)), FLOAT32
        )


@pytest.mark.campaign
@pytest.mark.parametrize("name", ["sqrt", *NAMES])
def test_slices_of_all_float32(name: str) -> None:
    """Emitted C on a sixteenth of all arguments, beside the C library and MPFR; `python -m
    tests.ir.functions.exhaustive` has all.
    """
    for start in range(0, 1 << 32, 1 << 28):
        outcome = exhaustive.run(name, start + (1 << 27), start + (1 << 27) + (1 << 24))
        assert outcome.wrong == 0, outcome
