"""Values in temporaries and in place: nothing that the checker proves of random pairs can be told apart."""

from __future__ import annotations

import pytest

from tests.attack.temporaries import attack
from tests.shares import one_in, some


@one_in(4)
@pytest.mark.parametrize("seed", some((1, 2), 1))
def test_a_slice_of_the_pairs(seed: int) -> None:
    """Of some dozens of pairs none is proved wrongly; most of those that no run tells apart are proved, some through
    loads.
    """
    tally = attack(seed, pairs=20)
    assert tally.wrong == []
    assert tally.counts["proved through loads"] >= 3 and tally.counts["proved"] >= 2 * len(tally.open)
    assert sum(count for name, count in tally.counts.items() if "runs differ" in name) >= 3


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(10, 18))
def test_many_pairs(seed: int) -> None:
    """Of thousands of pairs none is proved wrongly."""
    assert attack(seed, pairs=1500).wrong == []
