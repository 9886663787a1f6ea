"""Plans of graphs with all that a graph may have, tampered with in all ways: no claim that is proved of them fails in a
run.
"""

from __future__ import annotations

import pytest

from tests.attack.graph_proofs import attack
from tests.shares import one_in


@one_in(10)
def test_a_slice_of_the_proofs() -> None:
    """Honest plans are proved, most of what was tampered with is not, and what is proved holds, by interpreter and by
    generated C.
    """
    found = attack(101, graphs=5, tamperings=5, built=0.3)
    assert found.wrong == [] and found.unproved == []
    assert found.counts["as planned: proved"] >= 4 and found.counts["run by generated C"] >= 1
    assert sum(number for name, number in found.counts.items() if name.endswith(": not proved")) >= 4


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(200, 216))
def test_many_proofs(seed: int) -> None:
    """Of thousands of claims about planned and tampered graphs none that is proved fails in a run, and every honest
    plan is proved.
    """
    found = attack(seed, graphs=150, tamperings=9, built=0.1)
    assert found.wrong == [] and found.unproved == []
