"""Random layouts in every notation: read as libraries and formulas of their own say, and written as they are read."""

from __future__ import annotations

from random import Random

import pytest
from tests.random.layout_campaign import check_layout, check_read
from tests.random.layouts import DRAWS

from layoutproof.ir.notations.notation import Notation

READ, WRITTEN = 40, 4
# Relations of XORs take isl seconds to read; the campaign reads those too.
FAST = tuple(notation for notation in Notation if notation is not Notation.ISL)


@pytest.mark.parametrize("notation", DRAWS)
def test_a_layout_is_what_its_oracle_says(notation: str) -> None:
    """Every index goes to the cell that the oracle has, and every text that is written for the layout reads back."""
    draw = Random(f"{notation} in every run")
    for _ in range(READ):
        check_read(DRAWS[notation](draw))
    for _ in range(WRITTEN):
        check_layout(DRAWS[notation](draw), notations=FAST)
