"""Random layouts in every notation: read as libraries and formulas of their own say, and written as they are read."""

from __future__ import annotations

from random import Random

import pytest
from tests.random.layout_campaign import check_layout
from tests.random.layouts import DRAWS

SLICE = 8


@pytest.mark.parametrize("notation", DRAWS)
def test_a_layout_is_what_its_oracle_says(notation: str) -> None:
    """Every index goes to the cell that the oracle has, and every text that is written for the layout reads back."""
    draw = Random(f"{notation} in every run")
    for _ in range(SLICE):
        check_layout(DRAWS[notation](draw))
