"""A slice of the campaign: nothing that the checker accepts can be told apart, no mutant that changes the result is
accepted.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attack.campaign import attack, report
from tests.shares import one_in, some


@one_in(4)
@pytest.mark.parametrize("seed", some((101, 102), 1))
def test_a_slice_of_the_campaign(seed: int, tmp_path: Path) -> None:
    """Some dozens of accepted rewrites and of mutants: none is wrong, and nearly all legal rewrites are proved."""
    tally = attack(seed, rewrites=8, mutants=10)
    assert tally.wrong == [], report(tally, tmp_path)
    assert tally.counts["accepted"] == 8 and tally.counts["mutants that change the result"] >= 10
    assert tally.share >= 0.8, report(tally, tmp_path)
