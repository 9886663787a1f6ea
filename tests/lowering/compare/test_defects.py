"""What other compilers got wrong, written as pairs: each is refuted by a run."""

from __future__ import annotations

import pytest
from tests.lowering.compare.pairs import Pair, case_name, cases, check, named, pairs
from tests.shares import one_in

from layoutproof.verify.verdict.verdict import Status


@one_in(4)
@pytest.mark.parametrize(("pair", "given"), cases("defects"), ids=case_name)
def test_defects(pair: Pair, given: bool) -> None:
    """A rotation lost, iterations out of bounds, maxima over zeros, padding filled now and then, transposes that cancel
    by shape.
    """
    check(pair, given)


def test_padding_that_nobody_promised() -> None:
    """The padding that is filled now and then is no defect where no value was promised: the contract that is found says
    so.
    """
    found = named(pairs("defects"), "padding_under_the_producer_s_condition").compared(given=False)
    assert found.status is Status.PROVED
    assert [(layout.pad_value, layout.pad_given) for layout in found.layouts] == [("undef", False)]
