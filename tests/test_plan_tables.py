"""The tables of planned networks in the documentation are made from the figures that were kept, and say what must
hold.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.plan_tables import MARKS, RESULTS, Results, tables

from tests.tree import ROOT

PAGE = (ROOT / "docs" / "graphs.md").read_text(encoding="utf-8")
FIGURES: Results = json.loads(Path(RESULTS).read_text(encoding="utf-8"))
CASES = [(name, block) for name, blocks in FIGURES.items() for block in blocks]


def test_the_page_has_the_tables() -> None:
    """What stands between the marks is what the figures make."""
    shown = PAGE.partition(MARKS[0])[2].partition(MARKS[1])[0]
    assert shown.strip() == tables(FIGURES).strip()


def test_nine_networks_in_two_layouts() -> None:
    """Each of the networks was planned in blocks of 4 and of 8 channels."""
    assert len(FIGURES) == 9 and all(list(blocks) == ["4", "8"] for blocks in FIGURES.values())


@pytest.mark.parametrize(("name", "block"), CASES)
def test_the_least_is_the_least(name: str, block: str) -> None:
    """No choice that was compared costs less than the exact one, and every value of the planned graph was proved."""
    found = FIGURES[name][block]
    assert found["optimal"]
    assert found["exact"]["bytes"] <= min(found["greedy"]["bytes"], found["before"]["bytes"])
    assert list(found["verdicts"]) == ["proved"]


@pytest.mark.parametrize(
    ("name", "block"), [(name, block) for name, block in CASES if "proofs asked" in FIGURES[name][block]]
)
def test_a_second_process_proved_nothing(name: str, block: str) -> None:
    """Whatever the second process asked for, planning, proving and making kernels, stood in the proof cache."""
    found = FIGURES[name][block]
    assert 0 < found["proofs asked"] == found["proofs known"]


@pytest.mark.parametrize(
    ("name", "block"), [(name, block) for name, block in CASES if "bit-equal" in FIGURES[name][block]]
)
def test_what_ran_computed_the_same(name: str, block: str) -> None:
    """Bits were equal, plain, unplanned and planned, and onnxruntime agreed within the tolerance of floats."""
    found = FIGURES[name][block]
    assert found["bit-equal"] and found["largest difference"] < 1e-4
