"""Plans, tampered plans and folds of random graphs: nothing that is proved of them can be told apart by a run."""

from __future__ import annotations

import pytest

from tests.attack.graphs import attack_folds, attack_plans
from tests.shares import one_in


@one_in(4)
def test_a_slice_of_the_plans() -> None:
    """Plans are proved and compute the same bits; of what was tampered with, most is refused, and nothing is proved
    wrongly.
    """
    tally = attack_plans(1, graphs=4)
    assert tally.wrong == []
    assert tally.counts["as planned: proved"] >= 2 and tally.counts["as planned: not proved"] == 0
    assert tally.counts["schedules swapped: proved"] == 0 and tally.counts["constant changed: not proved"] >= 1


@one_in(4)
def test_a_slice_of_the_folds() -> None:
    """A graph with its layout operators folded holds what it held, wherever that was defined."""
    tally = attack_folds(1, graphs=20)
    assert tally.wrong == [] and tally.counts["folds made"] >= 15


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(10, 18))
def test_many_plans(seed: int) -> None:
    """Of hundreds of plans, and thousands that were tampered with, none is proved wrongly."""
    tally = attack_plans(seed, graphs=60)
    assert tally.wrong == [] and tally.counts["as planned: not proved"] == 0


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(10, 18))
def test_many_folds(seed: int) -> None:
    """Of thousands of folds none changes what is defined."""
    assert attack_folds(seed, graphs=400).wrong == []
