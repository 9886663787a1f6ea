"""Fast-math assumptions restrict what the old program computes, where it computes it, and nothing else."""

from __future__ import annotations

import math

import pytest
from tests.verify.values.asking import prove_same

from layoutproof.ir.dtype import BOOL, FLOAT32
from layoutproof.ir.expr import Binary, Expr, FloatImm, IfThenElseExpr, Select, Var, equal, logical_and
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.operators import BinaryOp
from layoutproof.verify.values.fast_math import ALL, FastMath
from layoutproof.verify.values.question import Given, Identical

F = FLOAT32
c = Var("c", BOOL)
x, y = Var("x", F), Var("y", F)
ZERO, ONE, FIVE = (FloatImm(v, F) for v in (0.0, 1.0, 5.0))
INFINITE = FloatImm(-math.inf, F)
FINITE = frozenset({FastMath.NNAN, FastMath.NINF})


def lazily(a: Expr, b: Expr) -> Expr:
    """`c ? a : b`, the other one not evaluated."""
    return IfThenElseExpr(c, a, b)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (Select(c, x, x - x), lazily(x, ZERO)),
        (Select(c, x, x * ZERO), lazily(x, ZERO)),
        (Select(c, x + y, y - y), lazily(x + y, ZERO)),
        (Select(c, x, Call("exp", (INFINITE - x,))), lazily(x, ZERO)),
        (lazily(x, Select(equal(y, ZERO), FIVE, ZERO)), lazily(x * y / y, ZERO)),
        (Select(logical_and(c, x > ZERO), ONE, x - x), IfThenElseExpr(logical_and(c, x > ZERO), ONE, ZERO)),
    ],
    ids=["minus", "times", "sum", "exp", "divisor", "condition"],
)
def test_a_branch_that_is_not_taken_is_not_computed(new: Expr, old: Expr) -> None:
    """What the old program does not evaluate may be NaN or infinite, or a divisor 0, under every fast-math
    assumption.
    """
    assert not prove_same(new, old, computed={x, y}).is_proved


def test_a_branch_that_is_taken_is() -> None:
    """Where both programs evaluate a value, or the old one always does, fast-math assumptions speak of it."""
    assert prove_same(lazily(x + (y - y), ZERO), lazily(x + y * ZERO, ZERO), computed={x, y}).fast_math <= ALL
    assert prove_same(Select(c, x, x - x), Select(c, x, ZERO), computed={x}).fast_math == FINITE
    assert prove_same(lazily(x - x, ZERO), lazily(x * ZERO, ZERO), computed={x}).is_proved


@pytest.mark.parametrize("choice", [Select, IfThenElseExpr])
def test_a_choice_computes_nothing(choice: type[Select] | type[IfThenElseExpr]) -> None:
    """A literal that a choice picks is no computed infinity."""
    for literal, flag in ((INFINITE, FastMath.NINF), (FloatImm(math.nan, F), FastMath.NNAN)):
        old = choice(c, x, literal)
        assert not prove_same(choice(c, x, ONE), old, computed={x}).is_proved
        # What an operation makes of it is.
        assert prove_same(choice(c, Call("abs", (x,)), ONE), Call("abs", (old,)), computed={x}).fast_math == {flag}


def test_a_maximum_is_an_operation() -> None:
    """What `max` yields is computed, a literal among its operands or not."""
    old = Binary(BinaryOp.MAX, Select(c, x, INFINITE), INFINITE)
    new = Binary(BinaryOp.MAX, Select(c, x, ONE), INFINITE)
    assert prove_same(new, old, computed={x}).fast_math == {FastMath.NINF}


def test_a_variable_that_is_another() -> None:
    """What fast-math assumptions say of a variable they say of the one that it is identical to, where they say it of
    both alike.
    """
    same = (Given(x, Identical(y)),)
    assert prove_same(ZERO, y - y, given=same, computed={x}).fast_math == {FastMath.NNAN}
    assert prove_same(y - y, ZERO, given=same, computed={x}).fast_math == FINITE
    assert not prove_same(Select(c, ZERO, y - y), lazily(x - x, ZERO), given=same, computed={x}).is_proved
