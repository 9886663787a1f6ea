"""Random claims against brute force: nothing is proved that a point refutes, nothing refuted that no point refutes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from random import Random

import pytest
from tests.random.claims import F, claim
from tests.shares import one_in, some
from tests.verify.values.oracle import random_points, violated
from tests.verify.values.typed_claims import FLOATS, INTEGERS, Claims

from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Var
from layoutproof.ir.semantics import round_float
from layoutproof.verify.values.fast_math import FastMath, FastMathSet
from layoutproof.verify.values.fast_math_search import search_fast_math
from layoutproof.verify.values.question import Identical, Question, ValueAnswer
from layoutproof.verify.values.solving import ValueBudget
from layoutproof.verify.values.terms import Number, constant_value
from layoutproof.verify.values.trials import pool_of
from layoutproof.verify.verdict.verdict import Status

# What is attacked is what is answered; that a hard one stays open is no matter here.
QUICK = ValueBudget(rlimit=200_000, polls=1_000, question=400_000)


def attack(seed: object, points: int) -> str:
    """One random claim; its status and engine."""
    rng = Random(str(seed))
    question, allowed = claim(rng)
    answer = search_fast_math(question, allowed, QUICK)
    assert answer.fast_math <= allowed
    match answer.status:
        case Status.PROVED:
            check_proof(question, answer.fast_math, rng, points)
        case Status.REFUTED:
            assert violated(question, allowed, refuting(question, answer)), f"{seed}: {question} {answer}"
        case _:
            assert answer.reason
    if answer.model is not None and Status.REFUTED is not answer.status and FastMath.NSZ not in allowed:
        assert violated(question, frozenset(), refuting(question, answer)), (
            f"{seed}: the model does not show that fast-math assumptions are needed"
        )
    return f"{answer.status} {answer.engine}"


def check_proof(question: Question, fast_math: FastMathSet, rng: Random, points: int) -> None:
    """No point refutes what was proved. Regrouping has no oracle here."""
    if FastMath.REASSOC in fast_math:
        return
    values: list[Number] = [*pool_of(F), *(round_float(rng.uniform(-3, 3), F) for _ in range(10))]
    for env in random_points(question, values, points, rng):
        for old, new in question.variants:
            env[new.name] = rng.choice((0.0, -0.0)) if env[old.name] == 0 else env[old.name]
        assert not violated(question, fast_math, env), f"{question} under {sorted(fast_math)} at {env}"


def refuting(question: Question, answer: ValueAnswer) -> dict[str, Number]:
    """The point of a refutation, with what its model leaves open filled in."""
    assert answer.model is not None
    env: dict[str, Number] = {v.name: 0.0 for v in question.variables}
    for given in question.given:
        if isinstance(given.property, Identical):
            value = constant_value(given.property.value)
            assert value is not None
            env[given.var.name] = value
    env |= dict(answer.model)
    for old, new in question.variants:
        if new.name not in answer.model:
            env[new.name] = env[old.name]
    return env


@one_in(7)
@pytest.mark.parametrize("block", some(range(8), 2))
def test_random_claims(block: int) -> None:
    """Fifty claims of each block; both outcomes occur."""
    outcomes = Counter(attack(f"{block}/{k}", 400) for k in range(50))
    assert any(o.startswith("proved") for o in outcomes) and any(o.startswith("refuted") for o in outcomes)


def attack_typed(seed: str, points: int) -> str:
    """One random claim over any types; its status. Proofs are checked at points that satisfy what is given."""
    rng = Random(seed)
    question, allowed = Claims(rng, rng.choice(FLOATS), rng.choice(INTEGERS)).claim()
    answer = search_fast_math(question, allowed, QUICK)
    assert answer.fast_math <= allowed
    if answer.is_proved and FastMath.REASSOC not in answer.fast_math:
        pools = {dtype: _pool(dtype) for dtype in {v.dtype for v in question.variables}}
        for _ in range(points):
            env = _typed_point(rng, question, pools)
            assert not violated(question, answer.fast_math, env), (
                f"{seed}: {question} under {sorted(answer.fast_math)} at {env}"
            )
    return str(answer.status)


def _pool(dtype: DType) -> list[Number]:
    special: list[Number] = [0.0, -0.0, math.nan, math.inf, -math.inf, 1.0, -1.0] if dtype.is_float else []
    return [*pool_of(dtype), *special, *special]


def _typed_point(rng: Random, question: Question, pools: Mapping[DType, list[Number]]) -> dict[str, Number]:
    env = {v.name: rng.choice(pools[v.dtype]) for v in question.variables}
    for given in question.given:
        if isinstance(given.property, Identical):
            other, value = given.property.value, constant_value(given.property.value)
            if value is not None:
                env[given.var.name] = value
            elif isinstance(other, Var):
                env[given.var.name] = env[other.name]
    for old, new in question.variants:
        env[new.name] = rng.choice((0.0, -0.0)) if env[old.name] == 0 else env[old.name]
    return env


@pytest.mark.parametrize("block", some(range(6), 1))
def test_random_claims_of_all_types(block: int) -> None:
    """Forty claims of each block, over floats of every width, integers, casts and choices; both outcomes occur."""
    outcomes = Counter(attack_typed(f"typed {block}/{k}", 150) for k in range(40))
    assert outcomes["proved"] and outcomes["refuted"]


@pytest.mark.campaign
@pytest.mark.parametrize("block", range(200))
def test_many_random_claims_of_all_types(block: int) -> None:
    """A long campaign of the same."""
    for k in range(100):
        attack_typed(f"typed campaign {block}/{k}", 600)


@pytest.mark.campaign
@pytest.mark.parametrize("block", range(200))
def test_many_random_claims(block: int) -> None:
    """A long campaign of the same."""
    for k in range(100):
        attack(f"campaign {block}/{k}", 1500)
