"""float16 and bfloat16 in compiled C: conversions over every pattern, arithmetic against numpy, with and without
compiler support.
"""

import math

import numpy as np
import pytest
from tests.lowering.codegen.programs import Array, array_of, assert_same, edges, numpy_type, pointwise, widened
from tests.shares import one_in

from layoutproof.ir.buffer import make_buffer
from layoutproof.ir.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, DType
from layoutproof.ir.expr import Cast
from layoutproof.ir.interp.runtime import call_math
from layoutproof.ir.intrinsics import Call
from layoutproof.lowering.runtime.build_c import build_c
from layoutproof.lowering.runtime.kernel import Kernel

HALVES = [FLOAT16, BFLOAT16]


@pytest.fixture(params=["the compiler's type", "our own conversion"])
def compiler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler with `_Float16`, and the same one with the macro gone by which generated code knows of it."""
    if request.param == "our own conversion":
        monkeypatch.setenv("CC", "cc -U__FLT16_MAX__")


def conversion(source: DType, target: DType, count: int) -> Kernel:
    """A kernel that casts `count` elements."""
    return build_c(
        pointwise("convert", [make_buffer("a", (count,), source)], [("r", lambda v: Cast(target, v[0]))], count),
        check=False,
    )


def patterns(dtype: DType) -> Array:
    """Every number of a 16-bit type."""
    return np.arange(1 << 16, dtype=np.uint16).view(numpy_type(dtype))


def near_halfway(dtype: DType, wide: type[np.float32] | type[np.float64]) -> Array:
    """For every finite number of a 16-bit type: halfway to the next one, and the nearest numbers of `wide` on both
    sides of that.
    """
    finite = widened(patterns(dtype), wide)
    finite = np.unique(np.abs(finite[np.isfinite(finite)]))
    middle = finite[:-1] + np.diff(finite) / wide(2)
    past = finite[-1] + (finite[-1] - finite[-2]) / wide(2)
    points = np.concatenate([middle, [past], finite])
    with np.errstate(over="ignore"):
        around = [points, np.nextafter(points, wide(0)), np.nextafter(points, wide(np.inf))]
    both = np.concatenate([*around, *(-a for a in around)]).astype(wide)
    extremes = np.array(
        [np.nan, np.inf, -np.inf, np.finfo(wide).max, np.finfo(wide).tiny, np.finfo(wide).smallest_subnormal],
        dtype=wide,
    )
    return np.concatenate([both, extremes])


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.usefixtures("compiler")
def test_every_pattern_widens_exactly(dtype: DType) -> None:
    """All 65,536 patterns become the float32 they stand for."""
    every = patterns(dtype)
    result = conversion(dtype, FLOAT32, every.size)(every)
    assert isinstance(result, np.ndarray)
    assert_same(result, widened(every, np.float32), f"{dtype} to float32")


@one_in(7)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("wide", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.usefixtures("compiler")
def test_narrowing_rounds_once_to_even(dtype: DType, wide: DType) -> None:
    """Around every halfway point between two neighbours, the nearest one is taken, the even one at the point itself."""
    values = near_halfway(dtype, np.float32 if wide == FLOAT32 else np.float64)
    result = conversion(wide, dtype, values.size)(values)
    assert isinstance(result, np.ndarray)
    assert_same(result, nearest(widened(values), dtype), f"{wide} to {dtype}")


def nearest(values: Array, dtype: DType) -> Array:
    """The nearest number of a 16-bit type, found by search: of two equally near ones the one with the even pattern.

    Positive numbers in order have the patterns 0, 1, 2, ...; past the largest comes infinity, as far away as one more
    step.
    """
    numbers = widened(patterns(dtype)[: 1 << 15])
    numbers = numbers[np.isfinite(numbers)]
    steps = np.append(numbers, 2 * numbers[-1] - numbers[-2])
    size = np.minimum(np.abs(np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf)), steps[-1])
    above = np.clip(np.searchsorted(steps, size), 1, steps.size - 1)
    low, high = size - steps[above - 1], steps[above] - size
    pattern = np.where((low < high) | ((low == high) & (above % 2 == 1)), above - 1, above).astype(np.uint16)
    pattern[np.signbit(values)] |= 1 << 15
    found: Array = pattern.view(numpy_type(dtype)).copy()
    found[np.isnan(values)] = np.nan
    return found


@one_in(14)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.usefixtures("compiler")
def test_arithmetic_on_random_pairs(dtype: DType) -> None:
    """Sums, differences, products and quotients of 400,000 random pairs are float64's, rounded once."""
    generator = np.random.default_rng(7)
    count = 400_000
    a, b = (generator.integers(0, 1 << 16, count, dtype=np.uint16).view(numpy_type(dtype)) for _ in range(2))
    b[: count // 2] = (
        (a[: count // 2].view(np.uint16) + generator.integers(-600, 600, count // 2)).astype(np.uint16).view(b.dtype)
    )
    operations = [
        ("p", lambda v: v[0] + v[1]),
        ("m", lambda v: v[0] - v[1]),
        ("t", lambda v: v[0] * v[1]),
        ("d", lambda v: v[0] / v[1]),
    ]
    buffers = [make_buffer(name, (count,), dtype) for name in "ab"]
    results = build_c(pointwise("pairs", buffers, operations, count), check=False)(a, b)
    x, y = widened(a), widened(b)
    narrow = conversion(FLOAT64, dtype, count)
    with np.errstate(all="ignore"):
        for wanted, actual in zip((x + y, x - y, x * y, x / y), results, strict=True):
            expected = narrow(wanted)
            assert isinstance(expected, np.ndarray)
            assert_same(actual, expected, f"{dtype} arithmetic")


@one_in(4)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.usefixtures("compiler")
def test_fused_multiply_add_rounds_once(dtype: DType) -> None:
    """fma agrees with exact arithmetic on edge values and on products that fall just beside a tie."""
    generator = np.random.default_rng(11)
    numbers = edges(dtype)
    triples = [tuple(numbers[int(k)] for k in generator.integers(0, len(numbers), 3)) for _ in range(4000)]
    finite = [float(v) for v in widened(patterns(dtype))[generator.integers(0, 1 << 16, 12_000)]]
    triples += [(finite[k], finite[k + 1], finite[k + 2]) for k in range(0, 9_000, 3)]
    triples += [(a, b, math.copysign(2.0**-14, a)) for a, b in zip(finite[:1000], finite[1000:2000], strict=True)]
    columns = [array_of([t[k] for t in triples], dtype) for k in range(3)]
    buffers = [make_buffer(name, (len(triples),), dtype) for name in "abc"]
    kernel = build_c(pointwise("fused", buffers, [("r", lambda v: Call("fma", tuple(v)))], len(triples)), check=False)
    result = kernel(*columns)
    assert isinstance(result, np.ndarray)
    assert_same(result, array_of([call_math("fma", t, dtype) for t in triples], dtype), f"{dtype} fma")
