"""Watched programs: what they call firm is exact, what fast-math assumptions leave out is a fault, and what is read is
noted.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from tests.shares import one_in
from tests.verify.replay.rewrites import func

from layoutproof.ir.dtype import DType, numpy_dtype
from layoutproof.ir.interp import Fault, FaultKind, run, same_values
from layoutproof.ir.interp.arguments import Array
from layoutproof.ir.interp.memory import DEFINED
from layoutproof.ir.semantics import float_format, max_finite, round_float
from layoutproof.verify.replay.strictness import Tracker
from layoutproof.verify.replay.watching import exposed, watched
from layoutproof.verify.values.fast_math import ALL, FastMath

COUNT = 4_000
KINDS = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}
OPERATIONS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}


def numbers(kind: str, seed: int) -> Array:
    """Floats of all kinds, many of them such that an operation on two hardly rounds, or just does."""
    generator = np.random.default_rng(seed)
    dtype = DType.parse(KINDS[kind])
    precision, lowest, highest = float_format(dtype)
    largest = 2.0 ** (precision - 2)
    groups = [
        generator.integers(-40, 40, COUNT),
        generator.integers(-64, 64, COUNT) / 16.0,
        generator.standard_normal(COUNT),
        largest + generator.integers(-4, 4, COUNT),
        np.exp2(generator.integers(lowest, highest, COUNT).astype(np.float64)),
        max_finite(dtype) * generator.choice([-1.0, 1.0], COUNT),
        generator.choice([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan], COUNT),
    ]
    picked = generator.integers(0, len(groups), COUNT)
    with np.errstate(all="ignore"):
        return np.choose(picked, groups).astype(numpy_dtype(dtype))


def nearest(exact: Fraction, dtype: DType) -> float:
    """The number of a type that a rational one is rounded to."""
    try:
        return round_float(float(exact), dtype)
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")


@pytest.mark.parametrize("kind", KINDS)
def test_a_quotient_at_the_end_may_be_rounded(kind: str) -> None:
    """A quotient that is stored and never loaded is firm, and the exact one rounded; one of operands that were rounded
    is not.
    """
    shapes = f"A: {kind}[{COUNT}]; C: {kind}[{COUNT}]; B: {kind}[{COUNT}]"
    choice = f"for i in range({COUNT}):\n    B[i] = T.if_then_else(i < 9, A[i], {{}})"
    a, c = numbers(kind, 1), numbers(kind, 2)
    arguments = {"A": a, "C": c, "B": np.zeros_like(a)}
    result = run(exposed(func(shapes, choice.format("A[i] / C[i]")), 0), arguments)
    assert (result.states["B"] == DEFINED).all()
    x, y, z = (array.astype(np.float64) for array in (a, c, result.arrays["B"]))
    for k in np.flatnonzero(np.isfinite(x) & np.isfinite(y) & (y != 0))[9:]:
        exact = Fraction(x[k]) / Fraction(y[k])
        assert nearest(exact, DType.parse(KINDS[kind])) == z[k], (x[k], y[k])
    rough = run(exposed(func(shapes, choice.format("(A[i] + C[i]) / C[i]")), 0), arguments)
    assert 0 < np.count_nonzero(rough.states["B"] == DEFINED) < COUNT


@one_in(4)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_firm_is_exact(kind: str, operation: str) -> None:
    """A finite result that is called firm is that of exact rational numbers; small whole operands give one where it is
    small too.
    """
    loaded = f"{body(operation)}\nD[0] = B[0]"
    program = func(f"A: {kind}[{COUNT}]; C: {kind}[{COUNT}]; B: {kind}[{COUNT}]; D: {kind}[1]", loaded)
    a, c = numbers(kind, 1), numbers(kind, 2)
    arguments = {"A": a, "C": c, "B": np.zeros_like(a), "D": np.zeros_like(a[:1])}
    plain, result = run(program, arguments), run(exposed(program, 0), arguments)
    firm = result.states["B"] == DEFINED
    assert same_values(plain.arrays["B"], result.arrays["B"])[firm].all()
    x, y, z = (array.astype(np.float64) for array in (a, c, plain.arrays["B"]))
    finite = np.isfinite(x) & np.isfinite(y) & np.isfinite(z)
    for k in np.flatnonzero(firm & finite):
        assert OPERATIONS[operation](Fraction(x[k]), Fraction(y[k])) == Fraction(z[k]), (x[k], y[k], z[k])
    overflows = np.isfinite(x) & np.isfinite(y) & np.isinf(z) & ((y != 0) | (operation != "/"))
    assert overflows.any() and not (firm & overflows).any()
    small = (
        (np.abs(x) < 8)
        & (np.abs(y) < 8)
        & (x == np.floor(x))
        & (y == np.floor(y))
        & np.isfinite(z)
        & (z == np.floor(z))
    )
    assert small.sum() > 20 and firm[small].all()
    assert firm[~np.isfinite(x) | ~np.isfinite(y)][: COUNT // 50].any()


def body(operation: str) -> str:
    """One operation on each pair of elements."""
    return f"for i in range({COUNT}):\n    B[i] = A[i] {operation} C[i]"


@pytest.mark.parametrize(
    ("source", "target"), [("f32", "f16"), ("f64", "f32"), ("f16", "bf16"), ("bf16", "f16"), ("f16", "f32")]
)
def test_a_conversion_is_firm(source: str, target: str) -> None:
    """A type with fewer numbers is asked for: what a conversion gives depends on its operand alone."""
    text = f"for i in range({COUNT}):\n    B[i] = T.Cast('{KINDS[target]}', A[i])"
    a = numbers(source, 3)
    program = func(f"A: {source}[{COUNT}]; B: {target}[{COUNT}]", text)
    plain, result = (run(each, {"A": a, "B": None}) for each in (program, exposed(program, 0)))
    assert (result.states["B"] == DEFINED).all() and same_values(plain.arrays["B"], result.arrays["B"]).all()


def test_a_conversion_of_what_is_rounded_is_not_firm() -> None:
    """The sum may come out otherwise, and so may what it is converted to."""
    program = exposed(func("A: f32[2]; B: f16[1]", "B[0] = T.Cast('float16', A[0] + A[1])"), 0)
    for values, firm in (((0.1, 0.2), False), ((2049.0, 0.5), True)):
        result = run(program, {"A": np.array(values, np.float32), "B": None})
        assert (result.states["B"] == DEFINED).all() == firm


def test_rounding_that_decides_control_is_a_fault() -> None:
    """A branch on a sum that is rounded cannot be followed."""
    program = exposed(func("A: f32[2]; B: f32[1]", "if A[0] + A[1] < T.float32(1):\n    B[0] = A[0]"), 0)
    exact = run(program, {"A": np.array([0.25, 0.5], np.float32), "B": np.zeros(1, np.float32)})
    assert exact.arrays["B"].tolist() == [0.25]
    with pytest.raises(Fault) as caught:
        run(program, {"A": np.array([0.1, 0.2], np.float32), "B": np.zeros(1, np.float32)})
    assert caught.value.kind is FaultKind.UNDEF


@pytest.mark.parametrize(
    ("text", "values", "flag", "faults"),
    [
        ("B[0] = A[0] * A[1]", (np.inf, 0.0), FastMath.NNAN, True),
        ("B[0] = A[0] * A[1]", (np.inf, 0.0), FastMath.NINF, False),
        ("B[0] = A[0] / A[1]", (1.0, 0.0), FastMath.NINF, True),
        ("B[0] = A[0] / A[1]", (1.0, 0.0), FastMath.NNAN, False),
        ("B[0] = A[0]", (np.nan, 0.0), FastMath.NNAN, False),
        ("B[0] = T.float32('-inf')\nB[0] = T.max(B[0], A[0])", (1.0, 0.0), FastMath.NINF, False),
        ("B[0] = T.if_then_else(A[1] == T.float32(0), A[0], A[0] / A[1])", (1.0, 0.0), FastMath.NINF, False),
        ("B[0] = T.float32(1) / (A[0] * A[1])", (1.0, 0.0), FastMath.NSZ, True),
    ],
)
def test_what_fast_math_leave_out_is_a_fault(
    text: str, values: tuple[float, float], flag: FastMath, faults: bool
) -> None:
    """What is computed counts: no literals, no loads, only what is evaluated; zeros where their sign would matter."""
    program = watched(func("A: f32[2]; B: f32[1]", text), frozenset({flag}))
    arguments = {"A": np.array(values, np.float32), "B": np.zeros(1, np.float32)}
    if not faults:
        run(program, arguments)
        return
    with pytest.raises(Fault) as caught:
        run(program, arguments)
    assert caught.value.kind is FaultKind.ASSUMPTION


def test_undefined_values_are_the_constant() -> None:
    """Cells that are assumed undefined, and undefined values of stores, hold what stands for them, and are known."""
    text = (
        "for i in range(3):\n    T.evaluate(T.assume(i < 2 or A[i] == T.undef(dtype='float32')))\n"
        "for i in range(3):\n    B[i] = A[i]\n"
    )
    program = exposed(func("A: f32[3]; B: f32[4]", f"{text}B[3] = T.undef(dtype='float32')"), 7)
    result = run(program, {"A": np.ones(3, np.float32), "B": np.zeros(4, np.float32)})
    assert result.arrays["B"].tolist() == [1, 1, 7, 7] and (result.states["B"] == DEFINED).all()


def test_what_is_read_is_noted() -> None:
    """Loads that happen, guards included, assumptions apart; nothing is known of vectors."""
    text = """
for i in T.parallel(4):
    T.evaluate(T.assume(A[i] < T.float32(9)))
    if D[i] > 0:
        B[i] = T.if_then_else(D[i] > 1, A[i], A[0])
"""
    tracker = Tracker.of(func("A: f32[4]; D: i32[4]; B: f32[4]", text))
    assert tracker is not None
    arrays = {"A": np.ones(4, np.float32), "D": np.array([0, 1, 2, 0], np.int32), "B": np.ones(4, np.float32)}
    found = tracker.read({}, arrays, 1_000)
    assert found is not None
    assert {name: array.tolist() for name, array in found.items()} == {"A": [1, 0, 1, 0], "B": [0, 0, 0, 0]}
    vector = func("A: f32[4]; B: f32[4]", "B[T.ramp(0, 1, 4)] = A[T.ramp(0, 1, 4)]")
    assert Tracker.of(vector) is None


def test_every_fast_math_can_be_watched() -> None:
    """An ordinary program runs watched, and does the same, where no fast-math assumption speaks of what it does."""
    program = func("A: f32[4]; B: f32[1]", "B[0] = T.float32(0)\nfor i in range(4):\n    B[0] = B[0] + A[i] * A[i]")
    arguments = {"A": np.array([1, 2, 3, 4], np.float32), "B": np.zeros(1, np.float32)}
    result = run(watched(program, ALL), arguments)
    assert result.arrays["B"].tolist() == [30.0] and (result.states["B"] == DEFINED).all()
