"""Questions whose sides differ in the signs of zeros alone are answered by their structure, without a solver."""

from __future__ import annotations

import pytest
from tests.verify.values.asking import prove_same

from layoutproof.ir.dtype import FLOAT32, INT32
from layoutproof.ir.expr import Binary, Cast, Expr, FloatImm, IfThenElseExpr, Select, Var, const
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.operators import BinaryOp
from layoutproof.verify.values.fast_math import ALL, IEEE, FastMath
from layoutproof.verify.values.question import AtLeast, Given, NotNegativeZero
from layoutproof.verify.values.solving import ValueBudget
from layoutproof.verify.verdict.verdict import Status

F = FLOAT32
NSZ = frozenset({FastMath.NSZ})
NO_SOLVER = ValueBudget(solvers=())
acc, a, w = (Var(name, F) for name in ("acc", "a", "w"))
ZERO, ONE = FloatImm(0.0, F), FloatImm(1.0, F)


def relu(x: Expr) -> Expr:
    """The larger of `x` and 0.0."""
    return Binary(BinaryOp.MAX, x, ZERO)


@pytest.mark.parametrize(
    ("expr", "needs_nsz"),
    [
        (acc + a * w, True),
        (w * a - acc, True),
        (Call("fma", (a, w, acc)), True),
        (Binary(BinaryOp.MIN, acc, a + w), True),
        (IfThenElseExpr(a > w, acc + a, acc), True),
        (Cast(FLOAT32, Cast(F, acc * w)), True),
        (acc / ONE, True),
        (a * a, False),
        (a * a + ONE, False),
        (acc + ZERO, False),
        (ZERO - acc, False),
        (acc - FloatImm(-0.0, F), False),
        (relu(acc + a * w), False),
        (Call("exp", (acc - a,)), False),
        (Call("sqrt", (Call("abs", (acc,)),)), False),
        (ONE / (Call("abs", (acc,)) + a * a), False),
        (Select(acc < a, ONE, ZERO), False),
        (Cast(FLOAT32, Cast(INT32, relu(acc))), False),
    ],
)
def test_the_same_tree_of_values_that_may_differ_in_a_zero(expr: Expr, needs_nsz: bool) -> None:
    """`nsz` at once where the sign of a zero comes out, no fast-math assumption where it is lost on the way."""
    answer = prove_same(expr, expr, loose={acc, a, w}, computed={acc, a, w}, budget=NO_SOLVER)
    if expr.dtype == F and any(
        isinstance(node, Cast) and node.dtype == INT32 for node in (expr, getattr(expr, "value", expr))
    ):
        # A conversion to an integer may trap, which the laws leave to solvers.
        assert answer.status is not Status.REFUTED
        return
    assert answer.is_proved and answer.fast_math == (NSZ if needs_nsz else IEEE), answer


def test_in_another_order() -> None:
    """Operands of sums and products may be swapped besides."""
    assert prove_same(w * a + acc, acc + a * w, loose={acc, a, w}, budget=NO_SOLVER).fast_math == NSZ
    assert prove_same(relu(w * a + acc), relu(acc + a * w), loose={acc, a, w}, budget=NO_SOLVER).fast_math == IEEE


@pytest.mark.parametrize(
    "expr",
    [ONE / acc, Call("rsqrt", (acc,)), Binary(BinaryOp.MAX, acc, a) / a, IfThenElseExpr(ONE / acc > ZERO, a, w)],
)
def test_where_the_sign_of_a_zero_grows(expr: Expr) -> None:
    """A reciprocal tells the zeros apart, and nothing is proved of it."""
    assert prove_same(expr, expr, loose={acc, a, w}, allowed=NSZ).status is Status.REFUTED


def test_facts_say_that_a_sign_is_lost() -> None:
    """Beside a value that is never -0.0 a zero's sign is lost, unless that value is loose itself."""
    known = (Given(a, NotNegativeZero()),)
    assert prove_same(acc + a, acc + a, loose={acc}, given=known, budget=NO_SOLVER).fast_math == IEEE
    assert prove_same(acc + a, acc + a, loose={acc, a}, given=known, budget=NO_SOLVER).fast_math == NSZ
    assert prove_same(acc + a, acc + a, loose={acc}, budget=NO_SOLVER).fast_math == NSZ
    positive = (Given(a, AtLeast(ONE)),)
    assert (
        prove_same(Binary(BinaryOp.MIN, acc, a), Binary(BinaryOp.MIN, acc, a), loose={acc}, given=positive).fast_math
        == NSZ
    )
    assert (
        prove_same(
            Binary(BinaryOp.MAX, acc, a), Binary(BinaryOp.MAX, acc, a), loose={acc}, given=positive, budget=NO_SOLVER
        ).fast_math
        == IEEE
    )


def test_without_the_fast_math_a_zero_counts() -> None:
    """The law of zero signs is `nsz`'s: where that is not allowed, the case is shown that breaks the claim."""
    answer = prove_same(acc + a, acc + a, loose={acc}, allowed=ALL - NSZ)
    assert answer.status is Status.REFUTED and answer.model is not None


def test_integers_have_no_zero_signs() -> None:
    """A loose integer is no other value."""
    n = Var("n")
    assert prove_same(n + const(1), n + const(1), loose={n}, budget=NO_SOLVER).fast_math == IEEE
