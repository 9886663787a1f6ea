"""Hard parts that both sides have are taken out before a solver is asked."""

from __future__ import annotations

import pytest
from tests.verify.values.asking import make_question, prove_same

from layoutproof.ir.dtype import FLOAT32
from layoutproof.ir.expr import Binary, Expr, FloatImm, IfThenElseExpr, Select, Var, equal
from layoutproof.ir.operators import BinaryOp
from layoutproof.verify.values.common_parts import without_shared_parts
from layoutproof.verify.values.fast_math import ALL, IEEE, FastMath
from layoutproof.verify.values.solving import ValueBudget
from layoutproof.verify.verdict.verdict import Status

F = FLOAT32
LITTLE = ValueBudget(rlimit=150_000, polls=600)
x, y, z, w = (Var(name, F) for name in "xyzw")
ZERO = FloatImm(0.0, F)
SWAPS = frozenset({FastMath.NNAN, FastMath.NSZ})


def least(a: Expr, b: Expr) -> Expr:
    """`a < b ? a : b`."""
    return Binary(BinaryOp.MIN, a, b)


@pytest.mark.parametrize("solvers", [("bitwuzla", "z3"), ("z3",)])
def test_operands_of_a_minimum_over_sums(solvers: tuple[str, ...]) -> None:
    """Swapped, one of them a sum or a quotient of other values: with neither NaN nor the sign of a zero, by either
    solver.
    """
    budget = ValueBudget(rlimit=400_000, polls=600, solvers=solvers)
    for hard in (x + y * z, x * y / z):
        answer = prove_same(least(hard, w), least(w, hard), computed={x, y, z, w}, budget=budget)
        assert answer.is_proved and answer.fast_math == SWAPS, answer
        answer = prove_same(least(hard, w), least(w, hard), computed={x, y, z, w}, loose={x, w}, budget=budget)
        assert answer.fast_math == SWAPS, answer


def test_a_choice_over_a_hard_part() -> None:
    """A maximum with 0.0 as a choice: bit for bit, whatever the value is."""
    hard = x * y / z
    relu = Binary(BinaryOp.MAX, hard, ZERO)
    assert prove_same(Select(hard > ZERO, hard, ZERO), relu, budget=LITTLE).fast_math == IEEE
    assert prove_same(Select(hard < ZERO, ZERO, hard), relu, budget=LITTLE, allowed=IEEE).status is not Status.PROVED


def test_what_is_kept_of_a_part() -> None:
    """Its kinds: an absolute value is not negative."""
    hard = Binary(BinaryOp.MAX, x * y / z, ZERO)
    rest = without_shared_parts(make_question(Select(hard < ZERO, ZERO, hard), least(hard, hard)), IEEE)
    assert rest is not None and any("not below 0.0" in str(g) for g in rest.given)


def test_a_part_that_is_not_always_evaluated_is_not_restricted() -> None:
    """Fast-math assumptions restrict a part where the old program computes it, and the variables in it there only."""
    old = IfThenElseExpr(z > ZERO, x * y, ZERO)
    new = Select(z > ZERO, x * y, x * y - x * y)
    rest = without_shared_parts(make_question(new, old, computed={x, y, z}), ALL)
    assert rest is not None and {v.name for v in rest.computed} == {"z"}
    assert not prove_same(new, old, computed={x, y, z}).is_proved
    eager = Select(z > ZERO, x * y, ZERO)
    answer = prove_same(new, eager, computed={x, y, z})
    assert answer.fast_math == {FastMath.NNAN, FastMath.NINF}


def test_a_trap_is_never_taken_out() -> None:
    """A quotient of integers may trap, and stays."""
    n, m = Var("n"), Var("m")
    quotient = n // m
    rest = without_shared_parts(make_question(Select(equal(m, n), quotient, quotient + n * n), quotient + n * n), IEEE)
    assert rest is not None and "m" in {v.name for v in rest.variables}
