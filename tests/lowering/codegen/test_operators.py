"""Every operator on every type, over edge values, in compiled C, against the one meaning in `ir/semantics.py`."""

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.lowering.codegen.programs import (
    BOOL,
    FLOATS,
    INTEGERS,
    TYPES,
    Group,
    applied,
    array_of,
    assert_same,
    edges,
    pointwise,
    run_groups,
)
from tests.shares import one_in

from layoutproof.ir import semantics
from layoutproof.ir.buffer import make_buffer
from layoutproof.ir.dtype import DType, Kind
from layoutproof.ir.expr import Binary, Cast, Compare, Expr, IfThenElseExpr, Logical, Not, Select
from layoutproof.ir.interp.runtime import float_div
from layoutproof.ir.intrinsics import Reinterpret
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.lowering.runtime.build_c import build_c

Reference = Callable[[Any, Any, DType], Any]

_DIVISIONS = {
    BinaryOp.FLOORDIV: "floordiv",
    BinaryOp.FLOORMOD: "floormod",
    BinaryOp.TRUNCDIV: "truncdiv",
    BinaryOp.TRUNCMOD: "truncmod",
}


def integer_reference(op: BinaryOp, a: int, b: int, dtype: DType) -> int:
    """What an integer operation gives; raises Trap where it gives nothing."""
    if op in _DIVISIONS:
        return semantics.divide(_DIVISIONS[op], a, b, dtype)
    plain: dict[BinaryOp, Callable[[int, int], int]] = {
        BinaryOp.ADD: operator.add,
        BinaryOp.SUB: operator.sub,
        BinaryOp.MUL: operator.mul,
        BinaryOp.BITAND: operator.and_,
        BinaryOp.BITOR: operator.or_,
        BinaryOp.BITXOR: operator.xor,
        BinaryOp.MIN: min,
        BinaryOp.MAX: max,
    }
    match op:
        case BinaryOp.SHL:
            return semantics.shift_left(a, b, dtype)
        case BinaryOp.SHR:
            return semantics.shift_right(a, b, dtype)
        case _:
            return semantics.wrap(plain[op](a, b), dtype)


def float_reference(op: BinaryOp, a: float, b: float, dtype: DType) -> float:
    """What a float operation gives, rounded once: float64 has enough digits for all narrower types."""
    match op:
        case BinaryOp.MIN:
            return semantics.select_min(a, b)
        case BinaryOp.MAX:
            return semantics.select_max(a, b)
        case BinaryOp.DIV:
            return semantics.round_float(float_div(a, b), dtype)
        case _:
            plain = {BinaryOp.ADD: operator.add, BinaryOp.SUB: operator.sub, BinaryOp.MUL: operator.mul}
            return semantics.round_float(plain[op](a, b), dtype)


def operators_of(dtype: DType) -> list[BinaryOp]:
    """The operators that a type has."""
    floats = [BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.DIV, BinaryOp.MIN, BinaryOp.MAX]
    bits = [BinaryOp.BITAND, BinaryOp.BITOR, BinaryOp.BITXOR]
    if dtype.is_float:
        return floats
    return bits if dtype.is_bool else [op for op in BinaryOp if op is not BinaryOp.DIV]


def defined_pairs(op: BinaryOp, dtype: DType) -> list[tuple[Any, Any, Any]]:
    """Pairs of edge values for which the operation has a result, with that result."""
    found = []
    for a, b in itertools.product(edges(dtype), repeat=2):
        try:
            result = float_reference(op, a, b, dtype) if dtype.is_float else integer_reference(op, a, b, dtype)
        except semantics.Trap:
            continue
        found.append((a, b, result))
    return found


@one_in(9)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_operators_mean_in_c_what_they_mean_in_the_program(dtype: DType) -> None:
    """Every binary operator of a type gives the reference's value on every pair of edge values that does not trap."""
    operators = operators_of(dtype)
    pairs = {op: defined_pairs(op, dtype) for op in operators}
    assert all(len(found) >= 4 for found in pairs.values())
    groups = [
        Group(f"r{k}", dtype, tuple(list(zip(*pairs[op], strict=True))[:2]), applied(Binary, op))
        for k, op in enumerate(operators)
    ]
    results = run_groups(groups)
    for k, op in enumerate(operators):
        assert_same(results[f"r{k}"], array_of([result for _, _, result in pairs[op]], dtype), f"{dtype} {op}")


@one_in(7)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_comparisons_and_choices(dtype: DType) -> None:
    """Comparisons, select and if_then_else agree with Python's on all pairs of edge values."""
    pairs = list(itertools.product(edges(dtype), repeat=2))
    a, b = (make_buffer(name, (len(pairs),), dtype) for name in "ab")
    python = {
        "==": operator.eq,
        "!=": operator.ne,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
    }
    results: list[tuple[str, Callable[[list[Expr]], Expr]]] = [
        (f"c{k}", applied(Compare, op)) for k, op in enumerate(CompareOp)
    ]
    results.append(("s", lambda v: Select(Compare(CompareOp.LT, *v), v[0], v[1])))
    results.append(("t", lambda v: IfThenElseExpr(Compare(CompareOp.LE, v[1], v[0]), v[0], v[1])))
    kernel = build_c(pointwise("compare", [a, b], results, len(pairs)), check=False)
    found = kernel(*(array_of([pair[k] for pair in pairs], dtype) for k in (0, 1)))
    for op, result in zip(CompareOp, found, strict=False):
        assert result.tolist() == [python[op.value](x, y) for x, y in pairs], f"{dtype} {op}"
    assert_same(found[-2], array_of([x if x < y else y for x, y in pairs], dtype), f"{dtype} select")
    assert_same(found[-1], array_of([x if y <= x else y for x, y in pairs], dtype), f"{dtype} if_then_else")


def test_connectives() -> None:
    """`and`, `or`, `not` and their mixtures give the truth table."""
    a, b = (make_buffer(name, (4,), BOOL) for name in "ab")
    both, either = applied(Logical, LogicalOp.AND), applied(Logical, LogicalOp.OR)
    results: list[tuple[str, Callable[[list[Expr]], Expr]]] = [
        ("x", both),
        ("y", either),
        (
            "z",
            lambda v: Logical(
                LogicalOp.OR, Logical(LogicalOp.AND, Not(v[0]), v[1]), Logical(LogicalOp.AND, v[0], Not(v[1]))
            ),
        ),
        ("w", lambda v: Not(Logical(LogicalOp.AND, Logical(LogicalOp.OR, *v), Not(both(v))))),
    ]
    kernel = build_c(pointwise("connect", [a, b], results, 4), check=False)
    p, q = np.array([False, False, True, True]), np.array([False, True, False, True])
    x, y, z, w = kernel(p, q)
    assert x.tolist() == (p & q).tolist() and y.tolist() == (p | q).tolist()
    assert z.tolist() == (p ^ q).tolist() and w.tolist() == (~(p ^ q)).tolist()


@one_in(12)
@pytest.mark.parametrize("source", TYPES, ids=str)
def test_casts(source: DType) -> None:
    """A cast to every type gives `semantics.cast_value` on every edge value that it has a result for."""
    values = edges(source)
    if source.is_integer:
        values = sorted(
            {*values, *(v for bits in range(64) for v in ties(bits) if source.min_int <= v <= source.max_int)}
        )
    if source.is_float:
        values = [*values, *float_ties(source)]
    groups, wanted = [], {}
    for target in TYPES:
        pairs = defined_casts(values, source, target)
        name = f"to_{target}"
        groups.append(Group(name, source, ([value for value, _ in pairs],), applied(Cast, target)))
        wanted[name] = array_of([result for _, result in pairs], target)
    for name, result in run_groups(groups).items():
        assert_same(result, wanted[name], f"{source} {name}")


@one_in(4)
@pytest.mark.parametrize("source", [t for t in INTEGERS if t.bits > 8], ids=str)
def test_bits_as_floats(source: DType) -> None:
    """The bits of an integer as a float give `semantics.float_of_bits`: of edge values, and of those that are special
    floats.
    """
    groups, wanted = [], {}
    for target in (t for t in FLOATS if t.bits == source.bits):
        digits = semantics.float_format(target)[0] - 1
        special = [(1 << (source.bits - 1)) - (1 << digits) + k for k in (-1, 0, 1, 1 << (digits - 1))]
        values = [semantics.wrap(sign + v, source) for v in special for sign in (0, 1 << (source.bits - 1))]
        values += edges(source)
        groups.append(Group(f"as_{target}", source, (values,), applied(Reinterpret, target)))
        wanted[f"as_{target}"] = array_of([semantics.float_of_bits(v, target) for v in values], target)
    for name, result in run_groups(groups).items():
        assert_same(result, wanted[name], f"{source} {name}")


def float_ties(source: DType) -> list[float]:
    """Numbers of `source` at, just below and just above halfway between two numbers of each narrower type, subnormals
    included.
    """
    found = []
    for target in FLOATS:
        precision, emin, emax = semantics.float_format(target)
        for exponent in {emin - precision, emin - 2, emin - 1, emin, emin + 1, -1, 0, 3, emax}:
            ulp = math.ldexp(1.0, max(exponent, emin) - precision + 1)
            for halves in (1, 3, 5, (1 << precision) + 1, (1 << precision) + 3, (2 << precision) - 1):
                middle = halves * ulp / 2
                found += [middle, math.nextafter(middle, 0.0), math.nextafter(middle, math.inf)]
    rounded = {semantics.round_float(value, source) for value in found if math.isfinite(value)}
    return [sign * value for value in sorted(rounded) for sign in (1.0, -1.0)]


def defined_casts(values: list[Any], source: DType, target: DType) -> list[tuple[Any, Any]]:
    """Values that a cast has a result for, with that result."""
    found = []
    for value in values:
        try:
            found.append((value, semantics.cast_value(value, source, target)))
        except semantics.Trap:
            continue
    return found


@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_a_float_that_was_an_integer_has_no_negative_zero(source: DType) -> None:
    """-0.25 as an integer is 0, and that as a float +0: the compiler may not make one truncation of the two casts."""
    values = [-0.0, -0.25, -0.5, 0.75, -1.5, 2.5] * 4
    signed = [t for t in INTEGERS if t.kind is Kind.INT]
    groups = [Group(f"by_{t}", source, (values,), lambda v, t=t: Cast(source, Cast(t, v[0]))) for t in signed]  # type: ignore[misc]  # a default argument
    for name, result in run_groups(groups).items():
        assert_same(result, array_of([float(int(v)) for v in values], source), f"{source} {name}")


def ties(bits: int) -> list[int]:
    """Integers at, just below and just above halfway between two numbers of each float type."""
    return [
        sign * ((1 << bits) + (1 << max(bits - p, 0)) + d)
        for p in (8, 11, 24, 53)
        for d in (-1, 0, 1)
        for sign in (1, -1)
    ]


@pytest.mark.parametrize("dtype", [t for t in FLOATS if t.kind is Kind.FLOAT and t.bits > 16], ids=str)
def test_not_contracted(dtype: DType) -> None:
    """`a * b + c` rounds twice: the compiler does not make one fused operation of it."""
    buffers = [make_buffer(name, (3,), dtype) for name in "abc"]
    kernel = build_c(pointwise("twice", buffers, [("r", lambda v: v[0] * v[1] + v[2])], 3), check=False)
    eps = 2.0**-23 if dtype.bits == 32 else 2.0**-52
    a, b, c = (np.full(3, v, dtype=str(dtype)) for v in (1.0 + eps, 1.0 - eps, -1.0))
    result = kernel(a, b, c)
    assert isinstance(result, np.ndarray)
    assert (result.tolist() == ((a * b) + c).tolist() and result[0] == 0.0) or math.isclose(result[0], 0.0)


@one_in(4)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_nested_integer_arithmetic_wraps_at_every_step(dtype: DType) -> None:
    """A sum that leaves its type wraps before it is divided, compared or widened."""
    pairs = [
        (x, y) for x, y in itertools.product(edges(dtype), repeat=2) if semantics.wrap(x + y, dtype) != dtype.min_int
    ]
    a, b = (make_buffer(name, (len(pairs),), dtype) for name in "ab")
    wide = DType.parse("int64")
    results: list[tuple[str, Callable[[list[Expr]], Expr]]] = [
        ("d", lambda v: Binary(BinaryOp.FLOORDIV, v[0] + v[1], v[1] - v[1] + 3)),
        ("c", lambda v: Compare(CompareOp.LT, v[0] + v[1], v[0])),
        ("w", lambda v: Cast(wide, v[0] * v[1])),
    ]
    kernel = build_c(pointwise("nested", [a, b], results, len(pairs)), check=False)
    quotient, less, product = kernel(*(array_of([pair[k] for pair in pairs], dtype) for k in (0, 1)))
    assert quotient.tolist() == [semantics.wrap(x + y, dtype) // 3 for x, y in pairs]
    assert less.tolist() == [semantics.wrap(x + y, dtype) < x for x, y in pairs]
    assert product.tolist() == [semantics.wrap(semantics.wrap(x * y, dtype), wide) for x, y in pairs]
