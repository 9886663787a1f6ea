"""Laws of values: exhaustive for 16 bits, against numpy; and rewrites that look like one and are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.shares import one_in
from tests.verify.kernel.test_holes import AB, INTEGERS, rejected

from layoutproof.verify.kernel.laws import law, pairings
from layoutproof.verify.kernel.programs import Expr
from layoutproof.verify.kernel.rejected import Rejected

NUMBERS = (0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 4.0, 0.25, -0.5, 3.0, 0.1, 6e-5, 2.0**-24, 2.0**15, 16384.0, "inf", "nan")
OPERATIONS: dict[str, Any] = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}
X = ("load", "", "A", ())


def every(dtype: str) -> np.ndarray[Any, Any]:
    """All numbers of 16 bits; of wider types those of every exponent, with ends and random bits of the significand."""
    if dtype in ("float16", "int16"):
        return np.arange(1 << 16, dtype=np.uint16).view(dtype)
    whole = np.dtype(dtype.replace("float", "uint"))
    bits, low = {"float32": (9, 23), "float64": (12, 52), "int32": (9, 23)}[dtype]
    tops = np.arange(1 << bits, dtype=np.uint64) << np.uint64(low)
    lows = np.random.default_rng(1).integers(0, 1 << low, 64, dtype=np.uint64)
    ends = np.array([0, 1, (1 << low) - 1, 1 << low - 1], dtype=np.uint64)
    found: np.ndarray[Any, Any] = (tops[:, None] | np.concatenate([lows, ends])).astype(whole).ravel().view(dtype)
    return found


def value(e: Expr, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What an expression of X and constants is, by numpy."""
    if e[0] == "load":
        return x
    if e[0] == "const":
        return np.full(x.shape, float.fromhex(e[2]) if isinstance(e[2], str) else e[2], dtype=x.dtype)
    with np.errstate(all="ignore"):
        found: np.ndarray[Any, Any] = OPERATIONS[e[0]](value(e[2], x), value(e[3], x))
    return found


def hold(x: np.ndarray[Any, Any], operator: str, number: float | str) -> int:
    """Check the laws of an operation of X and a number, either of which is on the left; how many were applied."""
    dtype, whole, applied = x.dtype.name, x.dtype.str.replace("f", "u"), 0
    constant = ("const", dtype, float(np.array(number, dtype=dtype)).hex())
    for sides in ((X, constant), (constant, X)):
        e = (operator, dtype, *sides)
        if law(e) != e:
            mine, theirs = value(law(e), x), value(e, x)
            same = (mine.view(whole) == theirs.view(whole)) | (np.isnan(mine) & np.isnan(theirs))
            assert same.all(), (e, law(e), x[~same][:3])
            applied += 1
    return applied


@one_in(4)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_laws_of_floats_hold(dtype: str) -> None:
    """Bit for bit, but that one NaN is as good as another: subnormal numbers, infinities and signs of zero included."""
    x = every(dtype)
    assert sum(hold(x, operator, number) for operator in OPERATIONS for number in NUMBERS) > 20


@one_in(224)
@pytest.mark.parametrize("part", range(128))
def test_laws_hold_of_every_float32(part: int) -> None:
    """All 2**32 numbers, four exponents of one sign at a time."""
    bits = 25
    x = (np.arange(1 << bits, dtype=np.uint32) + np.uint32(part << bits)).view("float32")
    applied = {
        ("*", 1.0): 2,
        ("*", 2.0): 2,
        ("+", -0.0): 2,
        ("-", 0.1): 1,
        ("/", 2.0): 1,
        ("/", 2.0**-24): 1,
        ("/", 2.0**126): 1,
    }
    assert {pair: hold(x, *pair) for pair in applied} == applied


@pytest.mark.parametrize("dtype", ["int16", "int32"])
def test_laws_of_integers_hold(dtype: str) -> None:
    """Where they wrap, too."""
    x = every(dtype)
    for operator in "+-*":
        for number in (0, 1, 2, -1, -(1 << 15), 7):
            constant = ("const", dtype, number)
            for sides in ((X, constant), (constant, X)):
                e = (operator, dtype, *sides)
                assert (value(law(e), x) == value(e, x)).all()


def test_a_sum_is_one_from_either_end() -> None:
    """As numpy adds and multiplies, of all pairs of some numbers."""
    x = every("float16")[::131]
    for operator in "+*":
        with np.errstate(all="ignore"):
            pairs = OPERATIONS[operator](x[:, None], x[None, :])
        assert np.array_equal(pairs, pairs.T, equal_nan=True)
        assert len(pairings((operator, "float16", X, X), (operator, "float16", X, X))) == 2


LOOP = "for i in range(8):\n    B[i] = {0}"
EQUAL = [
    ("A[i] + B[i]", "B[i] + A[i]"),
    ("A[i] * T.float32(2)", "A[i] + A[i]"),
    ("A[i] / T.float32(-8)", "T.float32(-0.125) * A[i]"),
    ("A[i] - T.float32(3)", "T.float32(-3) + A[i]"),
    ("A[i] * T.float32(1) + T.float32(-0.0)", "A[i]"),
    ("T.if_then_else(A[i] < B[i], A[i], B[i])", "T.Select(not B[i] > A[i], B[i], A[i])"),
    ("(A[i] + B[i]) * (A[i] - B[i])", "(A[i] - B[i]) * (B[i] + A[i])"),
]
NOT_EQUAL = [
    ("T.max(A[i], B[i])", "T.max(B[i], A[i])"),
    ("A[i] - B[i]", "B[i] - A[i]"),
    ("A[i] + T.float32(0)", "A[i]"),
    ("A[i] / T.float32(3)", "A[i] * T.float32(0.3333333432674408)"),
    ("A[i] / T.float32(1.7014118346046923e+38)", "A[i] * T.float32(5.877471754111438e-39)"),
    ("A[i] - A[i]", "T.float32(0)"),
    ("A[i] * T.float32(0)", "T.float32(0)"),
    ("(A[i] + B[i]) + A[i]", "A[i] + (B[i] + B[i])"),
    ("T.if_then_else(A[i] < B[i], A[i], B[i])", "T.Select(B[i] < A[i], A[i], B[i])"),
]


@pytest.mark.parametrize(("old", "new"), EQUAL)
def test_values_that_are_equal_by_a_law_are_accepted(old: str, new: str) -> None:
    """In both directions."""
    for a, b in ((old, new), (new, old)):
        assert rejected(AB, LOOP.format(a), LOOP.format(b)) == set()


@pytest.mark.parametrize(("old", "new"), NOT_EQUAL)
def test_what_is_no_law_is_rejected(old: str, new: str) -> None:
    """Zeros have signs, products round."""
    assert rejected(AB, LOOP.format(old), LOOP.format(new)) == {"same-value"}


def test_a_choice_that_evaluates_more_may_trap() -> None:
    """By a division by zero; one that evaluates less does not."""
    lazy, eager = (LOOP.format(f"T.{choice}(A[i] != 0, 7 // A[i], 1)") for choice in ("if_then_else", "Select"))
    assert rejected(INTEGERS, lazy, eager) == {"same-value"}
    assert rejected(INTEGERS, eager, lazy) == rejected(INTEGERS, lazy, lazy) == set()


def test_pairings_have_a_limit() -> None:
    """A text that can be paired in too many ways is rejected, and soon."""
    deep = "A[i] * B[i]"
    for _ in range(26):
        deep = f"({deep}) + ({deep[:0]}A[i] * B[i])"
    with pytest.raises(Rejected):
        pairings(("+", "float32", X, X), ("-", "float32", X, X))
    assert rejected(AB, LOOP.format(deep), LOOP.format(deep.replace("B[i]", "B[7 - i]"))) == {"same-value"}
