"""`reassoc` against all groupings and orders of a chain, and exact reals against fractions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from random import Random

import pytest
from tests.random.claims import NAMES, F, constant, fact, nearly
from tests.shares import one_in
from tests.verify.values.asking import prove_same
from tests.verify.values.oracle import Number, alike, behaviours, has, identical, random_points, value_at

from layoutproof.ir.dtype import FLOAT16, FLOAT32
from layoutproof.ir.expr import Binary, Cast, Expr, FloatImm, Select, Var
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.operators import BinaryOp
from layoutproof.verify.values.fast_math import ALL, FastMath
from layoutproof.verify.values.question import Given, Identical
from layoutproof.verify.values.solving import ValueBudget
from layoutproof.verify.values.terms import chain_of, comparable, ordered, regrouped, regroups
from layoutproof.verify.values.trials import pool_of
from layoutproof.verify.verdict.verdict import Status

QUICK = ValueBudget(rlimit=200_000, polls=1_000, question=400_000)
x, y, z = NAMES
_CHAINS = (BinaryOp.ADD, BinaryOp.MUL)


def trees(leaves: tuple[Expr, ...], op: BinaryOp) -> Iterator[Expr]:
    """Every grouping of leaves in this order."""
    if len(leaves) == 1:
        yield leaves[0]
    for cut in range(1, len(leaves)):
        for left in trees(leaves[:cut], op):
            for right in trees(leaves[cut:], op):
                yield Binary(op, left, right)


def groupings(expr: Expr) -> Iterator[Expr]:
    """Every expression that `reassoc` allows in place of one, orders of operands included."""
    if not isinstance(expr, Binary):
        yield expr
    elif expr.op in _CHAINS:
        leaves = tuple(chain_of(expr, expr.op))
        for order in permutations(range(len(leaves))):
            for parts in _product([list(groupings(leaves[k])) for k in order]):
                yield from trees(parts, expr.op)
    else:
        for a, b in _product([list(groupings(expr.lhs)), list(groupings(expr.rhs))]):
            yield Binary(expr.op, a, b)


def _product(choices: list[list[Expr]]) -> Iterator[tuple[Expr, ...]]:
    if not choices:
        yield ()
        return
    for first in choices[0]:
        for rest in _product(choices[1:]):
            yield (first, *rest)


def chain(rng: Random, depth: int = 2) -> Expr:
    """Sums of products, of three operands at most."""
    if depth == 0:
        return rng.choice(NAMES) if rng.random() < 0.8 else constant(rng)
    op = rng.choice((*_CHAINS, BinaryOp.MAX)) if rng.random() < 0.9 else BinaryOp.SUB
    parts = [chain(rng, depth - 1) for _ in range(2)]
    return Binary(op, *parts)


@one_in(4)
@pytest.mark.parametrize("block", range(4))
def test_random_regroupings(block: int) -> None:
    """What is proved under `reassoc` has, at every point, a grouping of the old side that gives the new value."""
    outcomes: Counter[str] = Counter()
    for k in range(40):
        rng = Random(f"{block}/{k}")
        old = chain(rng)
        new = rng.choice(list(groupings(old))) if rng.random() < 0.8 else chain(rng)
        if rng.random() < 0.3:
            new = nearly(rng, new)
        given = [Given(v, fact(rng)) for v in NAMES if rng.random() < 0.2]
        answer = prove_same(new, old, given=given, allowed=ALL - {FastMath.NNAN, FastMath.NINF}, budget=QUICK)
        outcomes[answer.status] += 1
        if answer.status is not Status.PROVED or FastMath.REASSOC not in answer.fast_math:
            continue
        ways = list(dict.fromkeys(groupings(old)))
        signs = FastMath.NSZ in answer.fast_math
        known: dict[str, Number] = {
            g.var.name: g.property.value.value
            for g in given
            if isinstance(g.property, Identical) and isinstance(g.property.value, FloatImm)
        }
        for env in random_points(_Mentioned(NAMES), list(pool_of(F)), 150, rng):
            env |= known
            if not all(has(g.property, g.var, env) for g in given):
                continue
            got = value_at(new, env)
            assert got is not None
            same = alike if signs else identical
            assert any(same(got.value, b.value) for way in ways for b in behaviours(way, env, signs)), (
                f"{new} {old} {env} {answer}"
            )
    assert outcomes[Status.PROVED] > 5


@dataclass(frozen=True)
class _Mentioned:
    """Variables without a question."""

    variables: tuple[Var, ...]


def exact(expr: Expr, env: dict[str, Number]) -> Fraction:
    """The exact value of sums, products and maxima."""
    match expr:
        case Var(name=name):
            return Fraction(env[name])
        case FloatImm(value=value):
            return Fraction(value)
        case Binary(op=op, lhs=a, rhs=b):
            left, right = exact(a, env), exact(b, env)
            table = {
                BinaryOp.ADD: left + right,
                BinaryOp.SUB: left - right,
                BinaryOp.MUL: left * right,
                BinaryOp.MAX: max(left, right),
            }
            return table[op]
        case _:
            raise TypeError(type(expr).__name__)


@one_in(4)
def test_exact_reals() -> None:
    """What only all four fast-math assumptions prove is true of fractions; what is refuted under all is not."""
    rng, outcomes = Random(5), Counter[str]()
    for _ in range(60):
        a, b, c = (rng.choice(NAMES) for _ in range(3))
        old = rng.choice((a * (b + c), (a + b) * (a - b), a * b + a * c, (a + b) * (a + b)))
        new = rng.choice((a * b + a * c, a * a - b * b, a * (c + b), a * a + b * b + (a * b + a * b), a * b))
        answer = prove_same(new, old, budget=ValueBudget())
        outcomes[answer.status] += 1
        points = random_points(_Mentioned(NAMES), [-2.0, -1.0, 0.0, 0.5, 3.0], 125, rng)
        differ = [env for env in points if exact(new, env) != exact(old, env)]
        if answer.status is Status.PROVED:
            assert not differ, f"{new} {old} {differ[0]}"
        if answer.status is Status.REFUTED:
            assert differ
    assert outcomes[Status.PROVED] > 5 and outcomes[Status.REFUTED] > 5


def test_reals_need_finite_operands() -> None:
    """Nothing is assumed of what only the new program has: `w * 0.0` is 0.0 as a real number, and NaN for an infinite
    `w`.
    """
    acc, w = Var("acc", FLOAT32), Var("w", FLOAT32)
    zero = FloatImm(0.0, FLOAT32)
    answer = prove_same(acc + w * zero, acc, computed={acc}, old_is_computed=False)
    assert answer.status is Status.REFUTED and answer.model is not None and not math.isfinite(answer.model["w"])
    assert prove_same(acc + w * zero, acc, computed={acc, w}, old_is_computed=False).is_proved
    quotient = prove_same(acc, acc * w / w, allowed=ALL, budget=QUICK)
    assert quotient.is_proved and quotient.fast_math == ALL
    assert prove_same(acc * w / w, acc, computed={acc, w}, old_is_computed=False, budget=QUICK).status is Status.REFUTED


def test_canonical_writings() -> None:
    """Order where it changes nothing, never grouping of floats; `max` of the IR keeps its order, integers regroup."""
    n, m, k = (Var(name) for name in "nmk")
    assert ordered((n + m) + k) == ordered(k + (m + n)) and ordered(n * m) == ordered(m * n)
    assert ordered(x + y) == ordered(y + x) and ordered((x + y) + z) != ordered(x + (y + z))
    assert ordered(Binary(BinaryOp.MAX, x, y)) != ordered(Binary(BinaryOp.MAX, y, x))
    assert ordered(Binary(BinaryOp.MAX, n, m)) == ordered(Binary(BinaryOp.MAX, m, n))
    assert ordered(Call("fma", (x, y, z))) == ordered(Call("fma", (y, x, z))) != ordered(Call("fma", (x, z, y)))
    assert ordered(x > y) == ordered(y < x) and ordered(n - m) != ordered(m - n)
    assert comparable(x - y) == comparable(x + y * -1.0) == comparable(y * -1.0 + x)
    assert comparable((x * -1.0) * (y * -1.0)) == comparable(x * y) != comparable((x * -1.0) * y)
    assert regrouped(comparable((x - y) + z)) == regrouped(comparable(x + (z - y)))
    assert (
        regroups((x + y) + z)
        and regroups((x - y) + z)
        and not regroups(x * y + z)
        and regroups(Select(x > y, x * (y * z), x))
    )
    assert ordered(Cast(FLOAT16, x + y)) == ordered(Cast(FLOAT16, y + x))
