"""Lookups by values of an input: random pairs that the checker proves equal have equal runs."""

from __future__ import annotations

import pytest

from tests.attack.lookups import attack
from tests.clauses import Clause, without
from tests.shares import one_in


@one_in(9)
def test_a_slice_of_the_pairs() -> None:
    """None of forty pairs is proved wrongly, and many are proved."""
    tally = attack(1, pairs=40)
    assert tally.wrong == []
    assert tally.counts["proved, no run differs"] >= 5 and tally.counts["open, runs differ"] >= 5


@one_in(9)
def test_the_runs_see_what_the_clause_keeps_away() -> None:
    """Without the clause on contents wrong pairs are proved, and found out."""
    with without(Clause.CONTENTS):
        assert attack(1, pairs=40).wrong


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(10, 18))
def test_many_pairs(seed: int) -> None:
    """Of thousands of pairs none is proved wrongly."""
    assert attack(seed, pairs=1500).wrong == []
