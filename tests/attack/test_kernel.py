"""A slice of the attack on the kernel: no rewrite that a run tells apart is accepted."""

from __future__ import annotations

import pytest

from tests.attack.kernel_campaign import attack
from tests.shares import some


@pytest.mark.parametrize("wrong", some((8, 600), 1))
def test_no_wrong_rewrite_is_accepted(wrong: int) -> None:
    """Programs, witnesses and evidence with something wrong in them."""
    tally = attack(21, wrong)
    assert tally.wrong == []
    assert tally.counts["wrong"] >= wrong
