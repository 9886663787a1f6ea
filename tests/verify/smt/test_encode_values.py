"""The value encoder against the reference interpreter: every operation, every type, negative numbers, NaN, infinities
and zeros of both signs.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
import z3
from tests.shares import one_in

from layoutproof.ir.dtype import (
    BFLOAT16,
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DType,
    numpy_dtype,
)
from layoutproof.ir.expr import Binary, Cast, Compare, Expr, FloatImm, IfThenElseExpr, IntImm, Logical, Not, Select, Var
from layoutproof.ir.intrinsics import Call, Limit, LimitKind, Reinterpret
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.semantics import Trap, max_finite
from layoutproof.ir.visit import free_variables, substitute
from layoutproof.verify.certificate.lemmas import Number, value_of
from layoutproof.verify.smt.encode_values import NotValue, ValueEncoder, disjunction, same

INTEGERS = (INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64)
FLOATS = (FLOAT16, BFLOAT16, FLOAT32, FLOAT64)
INTEGER_OPS = (
    BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV,
    BinaryOp.TRUNCMOD, BinaryOp.MIN, BinaryOp.MAX, BinaryOp.BITAND, BinaryOp.BITOR, BinaryOp.BITXOR,
    BinaryOp.SHL, BinaryOp.SHR,
)  # fmt: skip
FLOAT_OPS = (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.DIV, BinaryOp.MIN, BinaryOp.MAX)
ROUNDS = 15


def number(rng: Random, dtype: DType) -> Number:
    """A value of a type: special ones half of the time, else small ones or any bits."""
    if dtype.is_bool:
        return rng.random() < 0.5
    if dtype.is_integer:
        special = (
            dtype.min_int,
            dtype.max_int,
            0,
            1,
            2,
            dtype.max_int - 1,
            dtype.min_int + 1,
            -1 if dtype.min_int < 0 else 3,
        )
        low, high = rng.choice(((max(-9, dtype.min_int), 9), (dtype.min_int, dtype.max_int)))
        return rng.choice(special) if rng.random() < 0.5 else rng.randint(low, high)
    if rng.random() < 0.5:
        return rng.choice(
            (
                0.0,
                -0.0,
                1.0,
                -1.0,
                0.5,
                -1.5,
                2.5,
                float("inf"),
                float("-inf"),
                float("nan"),
                max_finite(dtype),
                -max_finite(dtype),
            )
        )
    bits = np.array([rng.getrandbits(dtype.bits)], dtype=f"uint{dtype.bits}")
    return float(bits.view(numpy_dtype(dtype))[0])


def literal(value: Number, dtype: DType) -> Expr:
    """The constant with a value."""
    return FloatImm(float(value), dtype) if dtype.is_float else IntImm(int(value), dtype)


def hold(assertions: Sequence[str], encoder: ValueEncoder, ctx: z3.Context) -> bool:
    """Whether truth values without variables are all true."""
    solver = z3.Solver(ctx=ctx)
    solver.add(z3.parse_smt2_string(encoder.script(assertions), ctx=ctx))
    answer = solver.check()
    assert answer in (z3.sat, z3.unsat)
    return bool(answer == z3.sat)


def _types(expr: Expr) -> dict[str, DType]:
    return {v.name: v.dtype for v in free_variables(expr)}


def check(expr: Expr, values: dict[str, Number], ctx: z3.Context) -> None:
    """The encoder's value, or trap, is the interpreter's. The solver only computes, so that a test's questions may
    share a context.
    """
    encoder = ValueEncoder()
    term = encoder.value(substitute(expr, {Var(n, t): literal(values[n], t) for n, t in _types(expr).items()}))
    try:
        expected: Number | None = value_of(expr, values)
    except Trap:
        expected = None
    traps = disjunction(encoder.traps)
    if expected is None:
        assert hold([traps], encoder, ctx), f"{expr} at {values}: has a result"
        return
    wanted = encoder.value(literal(expected, expr.dtype))
    if not hold([f"(not {traps})", same(term, wanted)], encoder, ctx):
        assert not hold([traps], encoder, ctx), f"{expr} at {values}: has no result, not {expected}"
        raise AssertionError(f"{expr} at {values}: not {expected}")


def check_random(expr: Expr, seed: object, rounds: int = ROUNDS) -> None:
    """`check` at random values of the expression's variables."""
    rng, ctx = Random(str(seed)), z3.Context()
    for _ in range(rounds):
        check(expr, {name: number(rng, dtype) for name, dtype in _types(expr).items()}, ctx)


@one_in(28)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("op", INTEGER_OPS, ids=lambda o: o.name)
def test_integer_operations(op: BinaryOp, dtype: DType) -> None:
    """Every integer operation wraps, rounds and traps as the interpreter's does."""
    check_random(Binary(op, Var("x", dtype), Var("y", dtype)), (op, dtype))


@one_in(4)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", FLOAT_OPS, ids=lambda o: o.name)
def test_float_operations(op: BinaryOp, dtype: DType) -> None:
    """Every float operation rounds once, and treats NaN and zeros as the interpreter's does."""
    check_random(Binary(op, Var("x", dtype), Var("y", dtype)), (op, dtype))


@one_in(28)
@pytest.mark.parametrize("dtype", (*INTEGERS, *FLOATS), ids=str)
@pytest.mark.parametrize("op", CompareOp, ids=lambda o: o.name)
def test_comparisons(op: CompareOp, dtype: DType) -> None:
    """Comparisons are signed, unsigned or IEEE's, by the type."""
    check_random(Compare(op, Var("x", dtype), Var("y", dtype)), (op, dtype))


@one_in(42)
@pytest.mark.parametrize("target", (BOOL, *INTEGERS, *FLOATS), ids=str)
@pytest.mark.parametrize("source", (BOOL, *INTEGERS, *FLOATS), ids=str)
def test_casts(source: DType, target: DType) -> None:
    """Every conversion wraps, rounds once, truncates or traps as the interpreter's does."""
    check_random(Cast(target, Var("x", source)), (source, target), rounds=8)
    if source.is_integer and target.is_float and source.bits == target.bits:
        check_random(Reinterpret(target, Var("x", source)), (source, target, "bits"), rounds=8)


@one_in(10)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(
    ("function", "arity"),
    [
        ("abs", 1),
        ("sqrt", 1),
        ("floor", 1),
        ("ceil", 1),
        ("round", 1),
        ("trunc", 1),
        ("fma", 3),
        ("fmax", 2),
        ("fmin", 2),
        ("maximum", 2),
        ("minimum", 2),
    ],
)
def test_interpreted_functions(function: str, arity: int, dtype: DType) -> None:
    """The functions that IEEE defines are exact, NaN and zeros included."""
    check_random(Call(function, tuple(Var(name, dtype) for name in "xyz"[:arity])), (function, dtype), rounds=15)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_magnitude_of_integers(dtype: DType) -> None:
    """The magnitude of the least signed number wraps to itself."""
    check_random(Call("abs", (Var("x", dtype),)), dtype)


@one_in(4)
@pytest.mark.parametrize("dtype", (INT8, INT32, FLOAT32), ids=str)
def test_choices_and_lazy_traps(dtype: DType) -> None:
    """Both sides of a select are evaluated, one of an if_then_else, and the right of `and` only when it matters."""
    x, y, p, q = Var("x", dtype), Var("y", dtype), Var("p", BOOL), Var("q", BOOL)
    check_random(Select(p, x, y), dtype)
    check_random(IfThenElseExpr(p, x, y), dtype)
    check_random(Logical(LogicalOp.OR, Not(p), Logical(LogicalOp.AND, p, q)), dtype)
    if dtype.is_integer:
        quotient, nonzero = x // y, Compare(CompareOp.NE, y, IntImm(0, dtype))
        check_random(Select(nonzero, quotient, x), dtype)
        check_random(IfThenElseExpr(nonzero, quotient, x), dtype)
        check_random(Logical(LogicalOp.AND, nonzero, Compare(CompareOp.GT, quotient, x)), dtype)


@pytest.mark.parametrize("dtype", (*INTEGERS, *FLOATS), ids=str)
def test_extreme_values(dtype: DType) -> None:
    """The least and the greatest number, and infinity, are what the interpreter has."""
    for kind in LimitKind if dtype.is_float else (LimitKind.MIN, LimitKind.MAX):
        check(Limit(kind, dtype), {}, z3.Context())


def test_library_functions_are_uninterpreted() -> None:
    """Of `exp` nothing is known but that equal arguments give equal results."""
    encoder = ValueEncoder()
    x = Var("x", FLOAT32)
    term = encoder.value(Binary(BinaryOp.SUB, Call("exp", (x,)), Call("exp", (x,))))
    assert encoder.uninterpreted == {"exp"}
    assert term and "declare-fun m_exp_float32" in encoder.declarations()


def test_vectors_are_refused() -> None:
    """More than one lane is not encoded, and the part is named."""
    with pytest.raises(NotValue) as caught:
        ValueEncoder().value(Var("v", FLOAT32.with_lanes(4)))
    assert caught.value.expr == Var("v", FLOAT32.with_lanes(4))
