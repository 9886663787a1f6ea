"""Many points at once, as the interpreter has them one at a time; tables of kinds and pools of values."""

from __future__ import annotations

import math
from itertools import product
from random import Random

import numpy as np
import pytest
from tests.shares import one_in
from tests.verify.smt.test_encode_values import FLOAT_OPS, FLOATS, INTEGER_OPS, INTEGERS, number
from tests.verify.values.oracle import identical, value_at

from layoutproof.ir.dtype import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT8, INT32, UINT8, DType
from layoutproof.ir.expr import Binary, Cast, Compare, Expr, FloatImm, IfThenElseExpr, IntImm, Logical, Not, Select, Var
from layoutproof.ir.interp.runtime import call_math
from layoutproof.ir.intrinsics import MATH_FUNCTIONS, Call, Limit, LimitKind, Reinterpret, Undef
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.semantics import float_format, round_float
from layoutproof.ir.visit import free_variables
from layoutproof.verify.certificate.lemmas import value_of
from layoutproof.verify.smt.encode_values import INTERPRETED
from layoutproof.verify.values import knowledge as classes
from layoutproof.verify.values.kind_tables import OPERATIONS, tables
from layoutproof.verify.values.knowledge import KINDS, kind_of, kinds_after, tabled_operations
from layoutproof.verify.values.law_table import POINTS, known_value
from layoutproof.verify.values.numbers import (
    NotEvaluated,
    Points,
    array_of,
    every_value,
    exact_function,
    round_array,
    round_to_format,
)
from layoutproof.verify.values.trials import pool_of

COUNT = 120


def check(expr: Expr, seed: object) -> None:
    """Values and traps at random points are those of one evaluation at a time."""
    rng = Random(str(seed))
    variables = free_variables(expr)
    columns = {v.name: [number(rng, v.dtype) for _ in range(COUNT)] for v in variables}
    points = Points({v.name: array_of(list(columns[v.name]), v.dtype) for v in variables}, COUNT)
    values = points.value(expr)
    for k in range(COUNT):
        here = value_at(expr, {name: column[k] for name, column in columns.items()})
        where = f"{expr} at { {name: column[k] for name, column in columns.items()} }"
        assert bool(points.trapped[k]) == (here is None), where
        if here is not None:
            value = values[k].item()
            assert identical(value if expr.dtype.is_float else int(value), here.value), where


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_operations(dtype: DType) -> None:
    """Integers wrap, round and trap as one at a time."""
    x, y = Var("x", dtype), Var("y", dtype)
    for op in INTEGER_OPS:
        check(Binary(op, x, y), (op, dtype))
    check(Call("abs", (x,)), dtype)


@one_in(4)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_float_operations(dtype: DType) -> None:
    """Floats round once, with NaN, zeros and subnormals as one at a time; library functions too."""
    names = [Var(name, dtype) for name in "xyz"]
    for op in FLOAT_OPS:
        check(Binary(op, names[0], names[1]), (op, dtype))
    for function, arity in MATH_FUNCTIONS.items():
        check(Call(function, tuple(names[:arity])), (function, dtype))


@one_in(4)
def test_casts_and_comparisons() -> None:
    """Every conversion, and every comparison."""
    for source, target in product((BOOL, *INTEGERS, *FLOATS), repeat=2):
        check(Cast(target, Var("x", source)), (source, target))
        if source.is_integer and target.is_float and source.bits == target.bits:
            check(Reinterpret(target, Var("x", source)), (source, target, "bits"))
    for dtype, op in product((*INTEGERS, *FLOATS), CompareOp):
        check(Compare(op, Var("x", dtype), Var("y", dtype)), (dtype, op))


@pytest.mark.parametrize("dtype", [INT8, INT32, FLOAT32], ids=str)
def test_choices(dtype: DType) -> None:
    """The untaken side of a lazy choice traps nowhere; a select evaluates both."""
    x, y, p, q = Var("x", dtype), Var("y", dtype), Var("p", BOOL), Var("q", BOOL)
    check(Select(p, x, y), dtype)
    check(Logical(LogicalOp.OR, Not(p), Logical(LogicalOp.AND, p, q)), dtype)
    if dtype.is_integer:
        some = Compare(CompareOp.NE, y, IntImm(0, dtype))
        for choice in (Select, IfThenElseExpr):
            check(choice(some, x // y, x), (choice, dtype))
        check(Logical(LogicalOp.AND, some, Compare(CompareOp.GT, x // y, x)), dtype)


def test_limits_and_what_is_no_value() -> None:
    """Extreme values are those of the type; what is no scalar arithmetic is refused by name."""
    for dtype in (*INTEGERS, *FLOATS):
        for kind in LimitKind if dtype.is_float else (LimitKind.MIN, LimitKind.MAX):
            assert value_of(Limit(kind, dtype), {}) == Points({}, 1).value(Limit(kind, dtype))[0].item()
    with pytest.raises(NotEvaluated, match="Undef"):
        Points({}, 1).value(Undef(FLOAT32))


def test_the_oracle_is_the_interpreter() -> None:
    """The tests' own evaluation is the reference interpreter's, on a program of one store."""
    rng = Random(7)
    x, y = Var("x", FLOAT16), Var("y", FLOAT16)
    for expr in (x * y + x, Binary(BinaryOp.MAX, x, y), Call("fma", (x, y, x)), Select(x > y, x / y, x - y)):
        for _ in range(10):
            env = {"x": number(rng, FLOAT16), "y": number(rng, FLOAT16)}
            here = value_at(expr, env)
            assert here is not None and identical(here.value, float(value_of(expr, env)))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_rounding(dtype: DType) -> None:
    """Whole arrays are rounded as single numbers are, ties and subnormals included."""
    rng = Random(3)
    precision, emin, _ = float_format(dtype)
    values = [rng.uniform(-4, 4) * 2.0 ** rng.randint(-160, 140) for _ in range(400)]
    values += [math.ldexp(2 * k + 1, emin - precision) for k in range(-20, 20)] + [
        0.0,
        -0.0,
        math.inf,
        -math.inf,
        math.nan,
    ]
    for way in (round_array(np.array(values), dtype), round_to_format(np.array(values), *float_format(dtype))):
        assert all(identical(float(got), round_float(value, dtype)) for got, value in zip(way, values, strict=True))


@one_in(4)
def test_the_tables_are_those_that_are_made() -> None:
    """The packaged tables are what `make_tables` makes."""
    assert tables() == tabled_operations()
    assert set(tabled_operations()) == {*OPERATIONS, "narrow"}


@pytest.mark.parametrize("dtype", [FLOAT16, BFLOAT16, FLOAT32, FLOAT64], ids=str)
def test_kinds_of_results(dtype: DType) -> None:
    """No operation on special values gives a kind that its table lacks, in any float type."""
    values = array_of(list(pool_of(dtype)), dtype)
    left, right = (side.ravel() for side in np.meshgrid(values, values))
    points = Points({"x": left, "y": right}, len(left))
    x, y = Var("x", dtype), Var("y", dtype)
    for name, table in tabled_operations().items():
        if name == "narrow":
            continue
        binary = len(table) == len(KINDS) ** 2
        result = points.value(OPERATIONS[name](x, y) if binary else OPERATIONS[name](x))
        for a, b, got in zip(left, right, result, strict=True):
            kinds = (kind_of(float(a)), kind_of(float(b))) if binary else (kind_of(float(a)),)
            allowed = kinds_after(name, *kinds)
            assert allowed is not None and kind_of(float(got)) & allowed, f"{name}({a}, {b}) = {got}"


def test_conversions_keep_to_their_table() -> None:
    """Rounding to a narrower type gives no kind that the table lacks; exhaustive from 16 bits."""
    for source, target in ((FLOAT16, BFLOAT16), (BFLOAT16, FLOAT16)):
        for value in every_value(Var("x", source))[::7]:
            allowed = kinds_after("narrow", kind_of(float(value)))
            assert allowed is not None and kind_of(round_float(float(value), target)) & allowed
    assert kinds_after("no operation", classes.POS) is None


@pytest.mark.parametrize("function", POINTS)
def test_exact_points(function: str) -> None:
    """The values taken for granted are those that the interpreter computes, in every float type."""
    for argument, value in (*POINTS[function], (math.nan, math.nan)):
        for dtype in FLOATS:
            assert identical(float(call_math(function, (argument,), dtype)), value)
        known = known_value(function, argument)
        assert known is not None and identical(known, value)
    assert known_value(function, 0.123) is None and known_value("pow", 0.0) is None


def test_every_value_of_a_type() -> None:
    """All 65,536 halves, and all 256 bytes."""
    assert len(every_value(Var("x", FLOAT16))) == 1 << 16 and len(set(every_value(Var("n", UINT8)).tolist())) == 256
    assert FloatImm(0.0, FLOAT16).value in every_value(Var("x", FLOAT16))


@one_in(4)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_fused_multiply_add(dtype: DType) -> None:
    """Rounded once, as the interpreter has it: special values in all combinations, random bits, and sums near a tie."""
    rng = Random(f"fma {dtype}")
    rows = list(product(pool_of(dtype)[:24], repeat=3))
    rows += [tuple(float(number(rng, dtype)) for _ in range(3)) for _ in range(4_000)]
    for _ in range(4_000):  # a product whose last bits are cut off by what is added
        a, b = (round_float(rng.uniform(1.0, 2.0), dtype) for _ in range(2))
        rows.append(
            (a, b, round_float(rng.choice((-1.0, 1.0)) * 2.0 ** rng.randint(-60, 60) * rng.uniform(1.0, 2.0), dtype))
        )
    found = exact_function("fma", dtype)
    assert found is not None
    results = found(*(np.array(column) for column in zip(*rows, strict=True)))
    for row, result in zip(rows, results.tolist(), strict=True):
        assert identical(result, call_math("fma", row, dtype)), row


@one_in(4)
@pytest.mark.parametrize("name", sorted(INTERPRETED - {"fma"}))
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_exact_functions(dtype: DType, name: str) -> None:
    """At special values and random bits each exact function is the interpreter's; and every function that solvers know
    is exact.
    """
    rng = Random(f"{name} {dtype}")
    arity = 2 if name in ("fmax", "fmin", "maximum", "minimum") else 1
    rows = list(product(pool_of(dtype), repeat=arity))
    rows += [tuple(float(number(rng, dtype)) for _ in range(arity)) for _ in range(2_000)]
    found = exact_function(name, dtype)
    assert found is not None
    with np.errstate(all="ignore"):
        results = found(*(np.array(column) for column in zip(*rows, strict=True)))
    for row, result in zip(rows, results.tolist(), strict=True):
        assert identical(result, call_math(name, row, dtype)), row
