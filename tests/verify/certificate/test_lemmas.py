"""Rules are proved or refuted, in the domain they speak about; every refutation was run."""

from __future__ import annotations

import pytest

from layoutproof.ir.dtype import BFLOAT16, BOOL, FLOAT16, FLOAT32, INT8, INT32, UINT8, DType
from layoutproof.ir.expr import Binary, Expr, FloatImm, Var, const, logical_and
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.rewrite import Domain, Rule
from layoutproof.ir.visit import free_variables
from layoutproof.verify.certificate.lemmas import prove_rule
from layoutproof.verify.verdict.verdict import Status

a, b, c, r = (Var(name) for name in "abcr")
TRUE = const(True)


def rule(lhs: Expr, rhs: Expr, condition: Expr = TRUE, domain: Domain = Domain.INDEX) -> Rule:
    """A rule over whatever variables it mentions."""
    names = {v: None for part in (lhs, rhs, condition) for v in free_variables(part)}
    return Rule("example", tuple(names), lhs, rhs, condition, domain)


def trunc(op: BinaryOp, x: Expr, y: Expr) -> Expr:
    """A truncating division or remainder."""
    return Binary(op, x, y)


@pytest.mark.parametrize(
    ("lhs", "rhs", "condition", "expected"),
    [
        ((a * 4 + r) // 4, a, logical_and(r >= 0, r < 4), Status.PROVED),
        ((a * 4 + r) // 4, a, r < 4, Status.REFUTED),
        ((a * c + r) // c, a, logical_and(r >= 0, r < c), Status.PROVED),
        ((a // b) // c, a // (b * c), logical_and(b > 0, c > 0), Status.PROVED),
        ((a // b) // c, a // (b * c), TRUE, Status.REFUTED),
        (a % 4, trunc(BinaryOp.TRUNCMOD, a, const(4)), a >= 0, Status.PROVED),
        (a % 4, trunc(BinaryOp.TRUNCMOD, a, const(4)), TRUE, Status.REFUTED),
        (a // -3, -(a // 3), TRUE, Status.REFUTED),
        (trunc(BinaryOp.TRUNCDIV, a, const(-3)), -trunc(BinaryOp.TRUNCDIV, a, const(3)), TRUE, Status.PROVED),
        ((a // c) * c + a % c, a, c > 0, Status.PROVED),
        ((a // c) * c + a % c, a, c < 0, Status.PROVED),
        ((a // c) * c + a % c, a, TRUE, Status.REFUTED),
        (a + 1, a, TRUE, Status.REFUTED),
        (a + b, b + a, TRUE, Status.PROVED),
    ],
)
def test_index_rules(lhs: Expr, rhs: Expr, condition: Expr, expected: Status) -> None:
    """Index rules speak of all integers, with floored division; one whose side has no value somewhere is refuted."""
    assert prove_rule(rule(lhs, rhs, condition)).status is expected


def test_index_counterexample_is_given() -> None:
    """The variables' values and both sides' are in the counterexample."""
    verdict = prove_rule(rule(a // -3, -(a // 3)))
    assert verdict.counterexample is not None
    value = verdict.counterexample["values"]["a"]
    assert (verdict.counterexample["lhs"], verdict.counterexample["rhs"]) == (value // -3, -(value // 3))


def _float(dtype: DType) -> tuple[Var, Var]:
    return Var("x", dtype), Var("y", dtype)


@pytest.mark.parametrize("dtype", [FLOAT16, BFLOAT16, FLOAT32], ids=str)
def test_float_rules(dtype: DType) -> None:
    """Floats are compared bit for bit, NaNs aside: adding +0.0 is no no-op, adding -0.0 is; nothing associates."""
    x, y = _float(dtype)
    zero, minus = FloatImm(0.0, dtype), FloatImm(-0.0, dtype)
    answers = {
        "x + -0.0": prove_rule(rule(x + minus, x, domain=Domain.VALUE)).status,
        "x + 0.0": prove_rule(rule(x + zero, x, domain=Domain.VALUE)).status,
        "x * 0.0": prove_rule(rule(x * zero, zero, domain=Domain.VALUE)).status,
        "x - x": prove_rule(rule(x - x, zero, domain=Domain.VALUE)).status,
        "x + y": prove_rule(rule(x + y, y + x, domain=Domain.VALUE)).status,
        "max": prove_rule(rule(Binary(BinaryOp.MAX, x, y), Binary(BinaryOp.MAX, y, x), domain=Domain.VALUE)).status,
    }
    proved, refuted = Status.PROVED, Status.REFUTED
    assert answers == {
        "x + -0.0": proved,
        "x + 0.0": refuted,
        "x * 0.0": refuted,
        "x - x": refuted,
        "x + y": proved,
        "max": refuted,
    }


@pytest.mark.parametrize("dtype", [INT8, UINT8, INT32], ids=str)
def test_integers_of_a_fixed_width_wrap(dtype: DType) -> None:
    """What holds of mathematical integers may fail when sums wrap, and the other way round."""
    x, y = Var("x", dtype), Var("y", dtype)
    assert prove_rule(rule(x + y - y, x, domain=Domain.VALUE)).status is Status.PROVED
    assert prove_rule(rule(x * 2 // 2, x, domain=Domain.VALUE)).status is Status.REFUTED
    assert prove_rule(rule(x < x + 1, TRUE, domain=Domain.VALUE)).status is Status.REFUTED
    assert prove_rule(rule(x // y * y + x % y, x, domain=Domain.VALUE)).status is Status.REFUTED


def test_traps_are_part_of_the_claim() -> None:
    """`INT_MIN // -1` has no result, so that a rule about it needs a condition."""
    x = Var("x", INT8)
    assert prove_rule(rule(x // -1, -x, domain=Domain.VALUE)).status is Status.REFUTED
    assert prove_rule(rule(x // -1, -x, x > -128, domain=Domain.VALUE)).status is Status.PROVED


def test_library_functions_are_not_computed() -> None:
    """Congruence is proved; what would need to know the function is not refuted unless it was run and differs."""
    x = Var("x", FLOAT32)
    same = Call("exp", (x + FloatImm(-0.0, FLOAT32),))
    assert prove_rule(rule(same, Call("exp", (x,)), domain=Domain.VALUE)).status is Status.PROVED
    positive = Binary(BinaryOp.MAX, Call("exp", (x,)), FloatImm(-1.0, FLOAT32))
    assert prove_rule(rule(positive, Call("exp", (x,)), domain=Domain.VALUE)).status is not Status.PROVED


def test_budget_gives_unknown() -> None:
    """A budget that is spent is no answer."""
    x, y, z = (Var(name, FLOAT32) for name in "xyz")
    hard = rule(x * y * z, x * (y * z), x * y * z > FloatImm(1.5, FLOAT32), domain=Domain.VALUE)
    verdict = prove_rule(hard, rlimit=1_000)
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason is not None
    assert "1000" in verdict.reason


@pytest.mark.parametrize("domain", Domain, ids=str)
def test_condition_that_never_holds_is_vacuous(domain: Domain) -> None:
    """A rule that never applies is not proved."""
    assert prove_rule(rule(a + 1, a, logical_and(a < 0, a > 0), domain)).status is Status.VACUOUS


def test_truth_values() -> None:
    """Rules of truth values are decided."""
    p, q = Var("p", BOOL), Var("q", BOOL)
    assert prove_rule(rule(logical_and(p, q), logical_and(q, p), domain=Domain.VALUE)).status is Status.PROVED
    assert prove_rule(rule(logical_and(p, q), p, domain=Domain.VALUE)).status is Status.REFUTED
