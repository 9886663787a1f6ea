"""The cheapest assignment is the one that trying all of them finds."""

from __future__ import annotations

import random
from itertools import product

import pytest
from tests.shares import one_in

from layoutproof.verify.smt.optimise import cheapest_assignment

RLIMIT = 10_000_000


@one_in(4)
@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_cheaper(seed: int) -> None:
    """Of all assignments that satisfy random clauses, none costs less than the one that is found."""
    chance = random.Random(seed)
    groups = [[1, 2], [3, 4, 5]]
    clauses = [[chance.choice((-1, 1)) * number for number in chance.sample(range(1, 9), 3)] for _ in range(8)]
    costs = {number: chance.randint(0, 9) for number in range(1, 9)}
    every = [{k + 1 for k, value in enumerate(values) if value} for values in product((False, True), repeat=8)]
    right = [
        true
        for true in every
        if all(len(true & set(group)) == 1 for group in groups)
        and all(any((abs(n) in true) is (n > 0) for n in c) for c in clauses)
    ]
    found = cheapest_assignment(groups, clauses, costs, rlimit=RLIMIT)
    if not right:
        assert found is None
        return
    assert found is not None and found.true is not None and set(found.true) in right
    assert sum(costs[n] for n in found.true) == min(sum(costs[n] for n in true) for true in right) == found.least


def test_the_same_question_has_the_same_answer() -> None:
    """Where several assignments cost the same, it is the same one again."""
    groups = [[k, k + 1, k + 2] for k in range(1, 30, 3)]
    answers = {cheapest_assignment(groups, [], dict.fromkeys(range(1, 31), 1), rlimit=RLIMIT) for _ in range(3)}
    assert len(answers) == 1


def test_what_cannot_be_has_no_answer() -> None:
    """Clauses that contradict a group have no assignment."""
    assert cheapest_assignment([[1, 2]], [[-1], [-2]], {}, rlimit=RLIMIT) is None
