"""Math functions in compiled C: bit for bit those of the reference interpreter, special values included."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.lowering.codegen.programs import FLOATS, INTEGERS, Group, applied, array_of, assert_same, edges, run_groups
from tests.shares import one_in

from layoutproof.ir.dtype import DType, Kind
from layoutproof.ir.expr import Expr
from layoutproof.ir.interp.runtime import call_math
from layoutproof.ir.intrinsics import MATH_FUNCTIONS, Call
from layoutproof.ir.semantics import float_format, round_float
from layoutproof.lowering.codegen.c_arithmetic import MATH_NAMES


def test_every_function_is_known() -> None:
    """The table of C names is complete."""
    assert set(MATH_NAMES) == set(MATH_FUNCTIONS)


def arguments(function: str, dtype: DType) -> list[tuple[Any, ...]]:
    """Edge values and random ones, as many as the function takes at a time."""
    generator = np.random.default_rng(len(function))
    precision, emin, emax = float_format(dtype)
    scales = generator.uniform(emin - precision, emax, 60)
    spread = [
        round_float(float(m) * 2.0 ** float(e), dtype)
        for m, e in zip(generator.uniform(-2, 2, 60), scales, strict=True)
    ]
    near = [round_float(float(v), dtype) for v in generator.uniform(-12, 12, 150)]
    halves = [sign * (k + 0.5) for k in range(6) for sign in (1.0, -1.0)]
    numbers = [*edges(dtype), *spread, *near, *halves]
    if MATH_FUNCTIONS[function] == 1:
        return [(v,) for v in numbers]
    if MATH_FUNCTIONS[function] == 2:
        return list(itertools.product([*edges(dtype), *near[:20]], repeat=2))
    return [tuple(numbers[int(k)] for k in generator.integers(0, len(numbers), 3)) for _ in range(2000)]


def call(name: str, *operands: Expr) -> Expr:
    """A call of a math function."""
    return Call(name, operands)


@one_in(14)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_functions_of_floats(dtype: DType, names: Sequence[str] = tuple(MATH_FUNCTIONS)) -> None:
    """Every function gives the bits of the reference interpreter on edge values and random numbers."""
    tuples = {name: arguments(name, dtype) for name in names}
    groups = [Group(name, dtype, tuple(zip(*tuples[name], strict=True)), applied(call, name)) for name in names]
    for name, result in run_groups(groups).items():
        wanted = [float(call_math(name, values, dtype)) for values in tuples[name]]
        assert_same(result, array_of(wanted, dtype), f"{name} of {dtype}")


@one_in(4)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_absolute_value_of_integers(dtype: DType) -> None:
    """`abs` wraps for the least signed integer, which has no positive counterpart, and leaves unsigned ones alone."""
    values = edges(dtype)
    result = run_groups([Group("r", dtype, (values,), lambda v: Call("abs", tuple(v)))])["r"]
    least = dtype.min_int if dtype.kind is Kind.INT else None
    assert result.tolist() == [v if v == least else abs(v) for v in values]
