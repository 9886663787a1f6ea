"""Random cells of studies are what brute force says; `tests/studies/brute_force.py` takes more."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest
from tests.shares import one_in
from tests.studies.brute_force import ALL_OF_16_BITS, confirm, random_cells

from layoutproof.studies.cells import Cell
from layoutproof.studies.judge import judge
from layoutproof.studies.operators import library


@one_in(7)
@pytest.mark.parametrize("seed", [3, 4])
def test_random_cells_are_confirmed(seed: int) -> None:
    """Proved cells run alike with and without their guards, and counterexamples show what they say."""
    for cell in islice(random_cells(seed), 5):
        assert confirm(judge(library()[cell.operator], cell), seed) is None, cell.key


def test_an_element_wise_operator_is_run_on_all_values_of_16_bits() -> None:
    """`relu` of float16 with anything in its padding, on each of the 65,536 values."""
    cell = Cell("relu", "float16", ALL_OF_16_BITS, "block4", "element-wise", "-", "ieee")
    assert confirm(judge(library()["relu"], cell)) is None


def test_a_wrong_proof_is_seen() -> None:
    """Brute force is no formality: the end of a refuted cell, called proved, is found out."""
    proved = judge(library()["sum"], Cell("sum", "int32", "fixed", "block4", "producer-writes", "0", "ieee"))
    wrong = judge(library()["sum"], Cell("sum", "int32", "fixed", "block4", "producer-writes", "1", "ieee"))
    assert proved.question is not None
    assert confirm(proved) is None
    pairs = zip(wrong.decisions, proved.decisions, strict=True)
    cheat = replace(wrong, status="proved", decisions=tuple(replace(w, verdicts=p.verdicts) for w, p in pairs))
    assert confirm(cheat) is not None
