"""Windows under attack: nothing that is proved by looking at the statements that differ can be told apart."""

from __future__ import annotations

import pytest

from tests.attack.windows import attack
from tests.shares import one_in, some


@one_in(10)
@pytest.mark.parametrize("seed", some((1, 2), 1))
def test_a_slice_of_the_changes(seed: int) -> None:
    """Of some dozens of changes none is proved wrongly; some are proved, and some of the others are wrong."""
    tally = attack(seed, pairs=60)
    assert tally.wrong == []
    assert tally.counts["proved in a window"] >= 3 and tally.counts["left to the whole, runs differ"] >= 2


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(10, 14))
def test_many_changes(seed: int) -> None:
    """Of thousands of changes none is proved wrongly."""
    assert attack(seed, pairs=2000).wrong == []
