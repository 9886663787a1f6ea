"""Random maps with symbolic extents: what is claimed for every extent, tried for extents 1 to 20 by brute force."""

from collections import Counter

import pytest
from hypothesis import given
from tests.random.symbolic_maps import SymbolicMap, draw_symbolic, examine_symbolic, symbolic_maps
from tests.shares import one_in, some

CHUNK = 40


@one_in(4)
@pytest.mark.parametrize("first", some(range(0, 320, CHUNK), 1))
def test_claims_hold_for_every_extent(first: int) -> None:
    """Verdicts, shape, padding, cell count and inverse are right at every extent, and refutations replay."""
    drawn = [draw_symbolic(seed) for seed in range(first, first + CHUNK)]
    wrong = [f"{asked}\n    {complaint}" for asked in drawn for complaint in examine_symbolic(asked)[0][:1]]
    assert not wrong, f"{len(wrong)} of {CHUNK} maps:\n" + "\n".join(wrong)


@pytest.mark.campaign
@given(symbolic_maps())
def test_more_claims_hold_for_every_extent(asked: SymbolicMap) -> None:
    """As above, with fresh examples on every run."""
    complaints, _ = examine_symbolic(asked)
    assert not complaints, f"{asked}: {complaints[0]}"


@one_in(9)
def test_most_symbolic_maps_are_decided() -> None:
    """Honest `unknown` and refusals stay the exception."""
    statuses = Counter(examine_symbolic(draw_symbolic(seed))[1]["injective"] for seed in range(1_000, 1_030))
    assert statuses["proved"] >= 12 and statuses["refuted"] >= 2
    assert statuses["unknown"] + statuses["refused"] <= 3
