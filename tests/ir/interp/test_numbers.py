"""Arithmetic of the interpreter against numpy, exact rationals and C's rules."""

from __future__ import annotations

import math
import random
import struct
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.running import result
from tests.shares import one_in

from layoutproof.ir.buffer import BufferLoad, make_buffer
from layoutproof.ir.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, HANDLE, DType, numpy_dtype
from layoutproof.ir.expr import Binary, Cast, Expr, IntImm, Var
from layoutproof.ir.interp import same_values
from layoutproof.ir.interp.runtime import call_math, float_div, fmax, fmin, fused_multiply_add, maximum, minimum, power
from layoutproof.ir.intrinsics import MATH_FUNCTIONS, Reinterpret
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.semantics import round_float
from layoutproof.ir.stmt import BufferStore, For, ForKind

N = 2048
FLOATS = {"float16": FLOAT16, "bfloat16": BFLOAT16, "float32": FLOAT32, "float64": FLOAT64}


def elementwise(op: Any, dtype: DType, out: DType | None = None) -> PrimFunc:
    """`C[i] = op(A[i], B[i])` over N elements."""
    a, b, c = (
        make_buffer("A", (N,), dtype),
        make_buffer("B", (N,), dtype),
        make_buffer("C", (N,), out if out is not None else dtype),
    )
    handles = tuple(Var(f"h{k}", HANDLE) for k in range(3))
    i = Var("i")
    value: Expr = op(BufferLoad(a, (i,)), BufferLoad(b, (i,)))
    body = For(i, IntImm(0), IntImm(N), ForKind.SERIAL, BufferStore(c, (i,), value))
    return PrimFunc("main", handles, tuple(zip(handles, (a, b, c), strict=True)), body)


def patterns(dtype: DType, seed: int) -> np.ndarray[Any, Any]:
    """Random bit patterns of a type, special values among them."""
    generator = np.random.default_rng(seed)
    bits = generator.integers(0, 256, N * dtype.bytes, dtype=np.uint8).view(numpy_dtype(dtype)).copy()
    special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.0, 0.5], dtype=np.float64)
    bits[: 9 * 9] = (np.repeat(special, 9) if seed % 2 else np.tile(special, 9)).astype(bits.dtype)
    return bits


@one_in(7)
@pytest.mark.parametrize("op", [BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.DIV], ids=lambda o: o.name)
@pytest.mark.parametrize("name", FLOATS)
def test_float_arithmetic_equals_numpy(name: str, op: BinaryOp) -> None:
    """Random bit patterns and all pairs of special values, both evaluators, bit for bit (bfloat16 against an exactly
    rounded float64).
    """
    dtype = FLOATS[name]
    a, b = patterns(dtype, 1), patterns(dtype, 2)
    with np.errstate(all="ignore"):
        operate = {BinaryOp.ADD: np.add, BinaryOp.SUB: np.subtract, BinaryOp.MUL: np.multiply, BinaryOp.DIV: np.divide}[
            op
        ]
        if name == "bfloat16":
            wide = operate(a.astype(np.float64), b.astype(np.float64))
            expected = np.array([round_float(float(x), dtype) for x in wide]).astype(ml_dtypes.bfloat16)
        else:
            expected = operate(a, b)
    found = result(elementwise(lambda x, y: Binary(op, x, y), dtype), [a, b, None])["C"]
    assert bool(same_values(found, expected).all())


def test_every_float16_against_some() -> None:
    """Every float16 combined with a few, by all four operations, equals numpy."""
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    for other in (1.0, -3.0, 2.0**-24, 65504.0, 0.1, 1.0009765625):
        b = np.float16(other)
        with np.errstate(all="ignore"):
            for operate, symbol in ((np.add, "+"), (np.subtract, "-"), (np.multiply, "*"), (np.divide, "/")):
                expected = operate(every, b).astype(np.float64)
                wide = [_wide(symbol, float(x), float(b)) for x in every[::7]]
                found = np.array([round_float(x, FLOAT16) for x in wide])
                assert bool(same_values(found, expected[::7]).all())


def _wide(symbol: str, a: float, b: float) -> float:
    match symbol:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case _:
            return float_div(a, b)


def exact(a: float, b: float, c: float, dtype: DType) -> float:
    """fma by rational arithmetic and a search of the nearest number, for finite results that are not zero."""
    value = Fraction(a) * Fraction(b) + Fraction(c)
    guess = round_float(float(value), dtype)
    steps = [x for x in (guess, _neighbour(guess, -1, dtype), _neighbour(guess, 1, dtype)) if math.isfinite(x)]
    steps.sort(key=lambda x: (abs(Fraction(x) - value), _last_bit(x, dtype)))
    return steps[0]


_BITS = {"float16": ("e", "h", 0), "float32": ("f", "i", 0), "float64": ("d", "q", 0), "bfloat16": ("f", "i", 16)}


def _pattern(x: float, dtype: DType) -> int:
    code, integer, shift = _BITS[str(dtype)]
    return int(struct.unpack(f"<{integer}", struct.pack(f"<{code}", x))[0]) >> shift


def _last_bit(x: float, dtype: DType) -> int:
    return _pattern(x, dtype) & 1


def _neighbour(x: float, direction: int, dtype: DType) -> float:
    code, integer, shift = _BITS[str(dtype)]
    if x == 0.0:
        return (
            direction * _neighbour(0.0, 1, dtype)
            if direction < 0
            else float(struct.unpack(f"<{code}", struct.pack(f"<{integer}", 1 << shift))[0])
        )
    bits = _pattern(x, dtype) + (direction if x > 0 else -direction)
    return float(struct.unpack(f"<{code}", struct.pack(f"<{integer}", bits << shift))[0])


@one_in(4)
@pytest.mark.parametrize("name", FLOATS)
def test_fma_rounds_once(name: str) -> None:
    """fma equals the nearest number to the exact value, near ties and subnormals included."""
    dtype, generator = FLOATS[name], random.Random(4)
    emin = {"float16": -12, "bfloat16": -60, "float32": -70, "float64": -500}[name]
    for _ in range(3000):
        low = generator.choice([-2, emin])
        a, b = (
            round_float(math.ldexp(generator.uniform(1, 2), generator.randint(low, low + 4)), dtype) for _ in range(2)
        )
        c = round_float(-a * b * generator.choice([1.0, 1 + 2.0**-8, generator.uniform(-2, 2)]), dtype)
        if math.isfinite(c) and c != 0.0 and Fraction(a) * Fraction(b) + Fraction(c) != 0:
            assert fused_multiply_add(a, b, c, dtype) == exact(a, b, c, dtype), (a, b, c)


def test_fma_special_cases() -> None:
    """Signed zeros, infinities, NaN, overflow, and the product that vanishes into -0.0."""
    assert math.copysign(1, fused_multiply_add(-0.0, 1.0, 0.0, FLOAT32)) == 1
    assert math.copysign(1, fused_multiply_add(-0.0, 1.0, -0.0, FLOAT32)) == -1
    assert math.copysign(1, fused_multiply_add(1.0, 1.0, -1.0, FLOAT32)) == 1
    assert math.isnan(fused_multiply_add(math.inf, 0.0, 1.0, FLOAT32))
    assert math.isnan(fused_multiply_add(math.inf, 1.0, -math.inf, FLOAT64))
    assert fused_multiply_add(1e308, 1e308, -math.inf, FLOAT64) == -math.inf
    assert fused_multiply_add(1e308, 10.0, -1e308, FLOAT64) == math.inf
    tiny = fused_multiply_add(-1.5 * 2.0**-75, 2.0**-74, 2.0**-149, FLOAT32)
    assert tiny == 0.0 and math.copysign(1, tiny) == -1


def test_min_and_max_by_name() -> None:
    """fmax and fmin drop a NaN, maximum and minimum keep it; all of them order -0 below +0."""
    nan = math.nan
    assert fmax(nan, 1.0) == fmax(1.0, nan) == fmin(nan, 1.0) == fmin(1.0, nan) == 1.0
    assert math.isnan(fmax(nan, nan)) and math.isnan(fmin(nan, nan))
    assert math.isnan(maximum(nan, 1.0)) and math.isnan(minimum(1.0, nan))
    for greater in (fmax, maximum):
        assert math.copysign(1, greater(-0.0, 0.0)) == math.copysign(1, greater(0.0, -0.0)) == 1
    for less in (fmin, minimum):
        assert math.copysign(1, less(-0.0, 0.0)) == math.copysign(1, less(0.0, -0.0)) == -1


def test_operator_max_takes_the_second_where_it_cannot_tell() -> None:
    """`max(a, b)` is `a > b ? a : b`: a NaN on the left is replaced, one on the right is kept, of two zeros the right
    one is taken.
    """
    for op, other in ((BinaryOp.MAX, np.greater), (BinaryOp.MIN, np.less)):
        a, b = patterns(FLOAT32, 1), patterns(FLOAT32, 2)
        with np.errstate(all="ignore"):
            expected = np.where(other(a, b), a, b)
        found = result(elementwise(lambda x, y, op=op: Binary(op, x, y), FLOAT32), [a, b, None])["C"]
        assert bool(same_values(found, expected).all())


def test_power_where_python_raises() -> None:
    """pow gives C's infinities and NaN."""
    assert power(0.0, -1.0) == math.inf and power(-0.0, -1.0) == -math.inf and power(-0.0, -2.0) == math.inf
    assert math.isnan(power(-2.0, 0.5))
    assert power(-10.0, 309.0) == -math.inf and power(10.0, 309.0) == math.inf


def test_math_functions_at_special_points() -> None:
    """Every function is total: no Python exception at zeros, infinities, NaN and extremes; known exact points hold."""
    points = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e30, -1e30, 2.0**-149)
    for function, arity in MATH_FUNCTIONS.items():
        for first in points:
            for second in points if arity > 1 else (0.0,):
                call_math(function, (first, second, 1.0)[:arity], FLOAT32)
    one = {f: call_math(f, (0.0,), FLOAT64) for f in ("exp", "cos", "sqrt", "tanh", "erf", "sigmoid", "log", "rsqrt")}
    assert one == {
        "exp": 1.0,
        "cos": 1.0,
        "sqrt": 0.0,
        "tanh": 0.0,
        "erf": 0.0,
        "sigmoid": 0.5,
        "log": -math.inf,
        "rsqrt": math.inf,
    }
    assert call_math("exp", (-math.inf,), FLOAT32) == 0.0 and call_math("exp", (1000.0,), FLOAT32) == math.inf


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.5, 0.0), (-0.5, -0.0), (1.5, 2.0), (2.5, 2.0), (-2.5, -2.0), (0.49999999999999994, 0.0), (1e30, 1e30)],
)
def test_round_is_half_to_even(value: float, expected: float) -> None:
    """`round` is IEEE's and TVM's: halves go to the even neighbour, and zeros keep their sign."""
    found = call_math("round", (value,), FLOAT64)
    assert found == expected and math.copysign(1, found) == math.copysign(1, expected)


def test_rounding_functions_keep_the_sign_of_zero() -> None:
    """floor, ceil, trunc and round of what rounds to zero keep the sign, and infinities."""
    for function, value in (("ceil", -0.5), ("trunc", -0.5), ("round", -0.25), ("floor", -0.0)):
        assert math.copysign(1, call_math(function, (value,), FLOAT64)) == -1
        assert call_math(function, (-math.inf,), FLOAT64) == -math.inf


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"]


@one_in(21)
@pytest.mark.parametrize("name", INTEGERS)
def test_integer_arithmetic_wraps_like_numpy(name: str) -> None:
    """Sum, difference, product and bitwise operations of random numbers wrap in every width, signed and unsigned."""
    dtype = DType.parse(name)
    a, b = (np.random.default_rng(s).integers(0, 256, N * dtype.bytes, dtype=np.uint8).view(name) for s in (5, 6))
    table = {
        BinaryOp.ADD: np.add, BinaryOp.SUB: np.subtract, BinaryOp.MUL: np.multiply, BinaryOp.BITAND: np.bitwise_and,
        BinaryOp.BITOR: np.bitwise_or, BinaryOp.BITXOR: np.bitwise_xor,
        BinaryOp.MIN: np.minimum, BinaryOp.MAX: np.maximum,
    }  # fmt: skip
    for op, operate in table.items():
        found = result(elementwise(lambda x, y, op=op: Binary(op, x, y), dtype), [a, b, None])["C"]
        assert np.array_equal(found, operate(a, b)), op


@one_in(4)
@pytest.mark.parametrize("name", ["int8", "uint8", "int32"])
def test_the_four_divisions(name: str) -> None:
    """Floored and truncated quotients and remainders of both signs: numpy's floor, C's truncation by fmod."""
    dtype = DType.parse(name)
    generator = np.random.default_rng(7)
    a = generator.integers(dtype.min_int + 1, dtype.max_int, N, dtype=np.int64).astype(name)
    b = generator.integers(max(dtype.min_int, -20), 20, N, dtype=np.int64).astype(name)
    b[b == 0] = 3
    wide, divisor = a.astype(np.int64), b.astype(np.int64)
    truncated = np.sign(wide) * np.sign(divisor) * (np.abs(wide) // np.abs(divisor))
    expected = {
        BinaryOp.FLOORDIV: wide // divisor,
        BinaryOp.FLOORMOD: wide % divisor,
        BinaryOp.TRUNCDIV: truncated,
        BinaryOp.TRUNCMOD: wide - truncated * divisor,
    }
    for op, values in expected.items():
        found = result(elementwise(lambda x, y, op=op: Binary(op, x, y), dtype), [a, b, None])["C"]
        assert np.array_equal(found.astype(np.int64), values), op


def test_divisions_on_small_negatives() -> None:
    """-7 by 2 is -4 remainder 1 floored, -3 remainder -1 truncated; with both signs turned likewise."""
    from layoutproof.ir.interp.walk_expr import binary_value

    int32 = DType.parse("int32")
    table = {
        (-7, 2): (-4, 1, -3, -1),
        (7, -2): (-4, -1, -3, 1),
        (-7, -2): (3, -1, 3, -1),
        (7, 2): (3, 1, 3, 1),
        (-8, 4): (-2, 0, -2, 0),
    }
    for (a, b), values in table.items():
        operations = (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD)
        assert tuple(binary_value(op, a, b, int32, False) for op in operations) == values


@pytest.mark.parametrize("target", ["float16", "float32", "float64", "bfloat16"])
@pytest.mark.parametrize("kind", ["int", "uint"])
def test_bits_equal_a_numpy_view(kind: str, target: str) -> None:
    """The float that has the bits of an integer is the one that numpy sees in its memory."""
    dtype = DType.parse(target)
    source = f"{kind}{dtype.bits}"
    a = np.random.default_rng(9).integers(0, 256, N * dtype.bits // 8, dtype=np.uint8).view(source)
    a[:3] = 0, 1 << (dtype.bits - 2), np.iinfo(source).min
    func = elementwise(lambda x, y: Reinterpret(dtype, x), DType.parse(source), dtype)
    assert bool(same_values(result(func, [a, a, None])["C"], a.view(numpy_dtype(dtype))).all())


CASTS = [
    ("float32", "float16"), ("float64", "float32"), ("int32", "float16"), ("int64", "float32"), ("uint64", "float32"),
    ("int32", "int8"), ("int8", "uint32"), ("float16", "float64"), ("int64", "float64"),
]  # fmt: skip


@one_in(4)
@pytest.mark.parametrize(("source", "target"), CASTS)
def test_casts_equal_numpy(source: str, target: str) -> None:
    """Narrowing rounds once to nearest even, integers wrap, widening is exact."""
    a = (
        patterns(DType.parse(source), 1)
        if "float" in source
        else np.random.default_rng(8).integers(0, 256, N * np.dtype(source).itemsize, dtype=np.uint8).view(source)
    )
    with np.errstate(all="ignore"):
        expected = a.astype(target)
    func = elementwise(lambda x, y: Cast(DType.parse(target), x), DType.parse(source), DType.parse(target))
    assert bool(same_values(result(func, [a, a, None])["C"], expected).all())
