"""Answers that are remembered: what was found to have no instance is not asked again, under that and more assumptions
only.
"""

from __future__ import annotations

from itertools import product
from random import Random
from typing import cast

import islpy as isl
import pytest

from layoutproof.ir.expr import Expr, Var, const
from layoutproof.ir.stmt import ForKind
from layoutproof.verify.isl import instance_search
from layoutproof.verify.isl.encode import Encoder
from layoutproof.verify.isl.instance_search import Model
from layoutproof.verify.isl.instance_sets import Region
from layoutproof.verify.isl.space import NoAnswer
from layoutproof.verify.program.instances import Dim, Guard, IterationDomain

ROW, COLUMN, N = Var("i"), Var("j"), Var("n")
_MOST = 6
ASSUMED = (N >= 2, N <= 4, N >= 4, N <= 3, N % 2 < 1)
GUARDS = (ROW < COLUMN, COLUMN + 1 < N, ROW + COLUMN >= N, (ROW + COLUMN) % 2 < 1)
ASKED = (ROW >= 3, COLUMN > ROW + 1, ROW + COLUMN > 5, ROW * 2 >= N + COLUMN, COLUMN < 1)


def _domain(guards: tuple[Expr, ...]) -> IterationDomain:
    dims = tuple(Dim(v, const(0), N, ForKind.SERIAL) for v in (ROW, COLUMN))
    return IterationDomain(dims, tuple(Guard(each) for each in guards))


def _happens(conditions: tuple[Expr, ...]) -> bool:
    """Whether some values satisfy conditions, by trying all."""
    from layoutproof.ir.evaluate import evaluate

    for n in range(_MOST + 1):
        for i, j in product(range(n), repeat=2):
            if all(evaluate(each, {"i": i, "j": j, "n": n}) for each in conditions):
                return True
    return False


def _some(rng: Random, choices: tuple[Expr, ...]) -> tuple[Expr, ...]:
    return tuple(each for each in choices if rng.random() < 0.4)


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instance_search, "_NO_INSTANCES", instance_search._NoInstances())


def test_remembered_answers_are_those_of_trying_all_values() -> None:
    """Hundreds of questions of one process, in any order under any assumptions, have the answers of brute force."""
    rng = Random(0)
    for _ in range(400):
        assumed, guards, asked = _some(rng, ASSUMED), _some(rng, GUARDS), _some(rng, ASKED)
        model = Model((N,), assumed, {N: (0, _MOST)})
        found = model.search(_domain(guards), *asked)
        assert found.is_empty != _happens((*assumed, *guards, *asked))
        low, high = rng.randrange(3), rng.randrange(3, 7)
        outside = model.outside(_domain(guards), ROW + COLUMN, low, high)
        below, above = (_happens((*assumed, *guards, each)) for each in (ROW + COLUMN < low, ROW + COLUMN > high))
        assert outside.is_empty != (below or above)


def test_more_assumptions_need_no_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was answered under fewer assumptions is not encoded again; under others it is."""
    asked = (ROW >= 4,)
    assert Model((N,), (N <= 4,), {N: (0, _MOST)}).search(_domain(()), *asked).is_empty
    monkeypatch.setattr(Model, "_encode", _refuse)
    assert Model((N,), (N >= 2, N <= 4), {N: (0, _MOST)}).search(_domain(()), *asked).is_empty
    for other in (
        Model((N,), (N >= 2,), {N: (0, _MOST)}),
        Model((N,), (N <= 4,), {N: (0, _MOST + 1)}),
        Model((N, Var("m")), (N <= 4,), {N: (0, _MOST)}),
    ):
        with pytest.raises(AssertionError, match="encoded"):
            other.search(_domain(()), *asked)


def test_an_instance_is_asked_for_each_time() -> None:
    """Points are not remembered: they are different ones under different assumptions."""
    for least in (2, 3, 4):
        found = Model((N,), (N >= least,), {N: (0, _MOST)}).search(_domain(()), ROW >= 1)
        assert found.point is not None
        assert found.point["n"] >= least


def test_the_last_answers_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory has a bound, of questions and of places."""
    monkeypatch.setattr(instance_search, "_MOST_QUESTIONS", 3)
    monkeypatch.setattr(instance_search, "_MOST_PLACES", 2)
    known = instance_search._NoInstances()
    for k in range(9):
        known.add((known.number_of(k), "asked"), frozenset())
    assert [known.has((number, "asked"), frozenset()) for number in range(9)] == [False] * 6 + [True] * 3
    assert known.number_of(8) == 8
    assert known.number_of(0) == 9


def _refuse(*_: object) -> None:
    raise AssertionError("encoded")


def test_a_piece_with_very_many_quotients_is_not_met() -> None:
    """Isl counts few operations for it and takes seconds: digits under XOR made simulations that did not end."""
    encoder = cast(Encoder, None)
    for digits, is_met in ((10, True), (70, False)):
        terms = " and ".join(f"exists (e{k} : {k + 3} e{k} <= i <= {k + 3} e{k} + 1)" for k in range(digits))
        points = isl.Set(f"{{ [i] : 0 <= i and {terms} }}")
        region = Region(encoder, isl.Set("{ [i] : i <= 1 }"))
        assert points.n_basic_set() == 1
        if is_met:
            assert not region.within(points).is_empty
        else:
            with pytest.raises(NoAnswer, match="too many quotients"):
                Region(encoder, points).within(points)
