"""The meaning of expressions and statements on an OpenCL device: what is tried on compiled C is tried on compiled
OpenCL C as well.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.lowering.codegen import programs, test_half, test_math, test_operators, test_random_exprs, test_statements
from tests.lowering.codegen.programs import FLOATS
from tests.shares import one_in

from layoutproof.ir.dtype import DType
from layoutproof.ir.interp.runtime import LIBRARY
from layoutproof.ir.intrinsics import MATH_FUNCTIONS
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.runtime.kernel import Kernel
from layoutproof.lowering.runtime.opencl.build_opencl import build_opencl

MODULES = (programs, test_half, test_math, test_operators, test_random_exprs, test_statements)


@pytest.fixture(autouse=True)
def on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those tests build for OpenCL in here."""

    def build(func: PrimFunc, *args: Any, **options: Any) -> Kernel:
        return build_opencl(func, *args, device="pocl", **options)

    for module in MODULES:
        if hasattr(module, "build_c"):
            monkeypatch.setattr(module, "build_c", build)


@pytest.fixture
def compiler() -> None:
    """Halves are tried with two C compilers; a device has one of its own."""


test_operators_of_every_type = test_operators.test_operators_mean_in_c_what_they_mean_in_the_program
test_comparisons_and_choices = test_operators.test_comparisons_and_choices
test_connectives = test_operators.test_connectives
test_casts = test_operators.test_casts
test_bits_as_floats = test_operators.test_bits_as_floats
test_a_float_that_was_an_integer_has_no_negative_zero = (
    test_operators.test_a_float_that_was_an_integer_has_no_negative_zero
)
test_not_contracted = test_operators.test_not_contracted
test_nested_integer_arithmetic = test_operators.test_nested_integer_arithmetic_wraps_at_every_step
test_absolute_value_of_integers = test_math.test_absolute_value_of_integers
test_every_pattern_widens_exactly = test_half.test_every_pattern_widens_exactly
test_narrowing_rounds_once_to_even = test_half.test_narrowing_rounds_once_to_even
test_arithmetic_on_random_pairs_of_halves = test_half.test_arithmetic_on_random_pairs
test_fused_multiply_add_of_halves = test_half.test_fused_multiply_add_rounds_once


@one_in(14)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_functions_of_floats(dtype: DType) -> None:
    """Functions of the narrower types give the interpreter's bits; `pow`, large angles and float64 are the device's own
    affair.
    """
    own = {"pow", "sin", "cos", "tan"} if dtype.bits < 64 else LIBRARY.keys() - {"sqrt"}
    test_math.test_functions_of_floats(dtype, [name for name in MATH_FUNCTIONS if name not in own])


@one_in(7)
@pytest.mark.parametrize(("seed", "depth", "index_bits"), [(1, 2, None), (3, 4, None)])
def test_random_expressions(seed: int, depth: int, index_bits: int | None) -> None:
    """120 random expressions give the interpreter's values bit for bit."""
    test_random_exprs.compare(seed, 120, depth, index_bits)
