"""The seven ways of treating padding, as scripts: what they print is what they promise, to the letter."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import Golden
from tests.lowering.programs import copy
from tests.pages import output_of
from tests.tree import ROOT

from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.lowering.schedule.trace import proof_text

EXAMPLES = ROOT / "examples" / "padding"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py"))


def test_there_are_seven_ways() -> None:
    """One script for each way of the roadmap, in its order."""
    assert [name[:2] for name in SCRIPTS] == [f"{number:02}" for number in range(1, 8)]


@pytest.mark.pages
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_prints_its_story(name: str, tmp_path: Path, golden: Golden) -> None:
    """Run from anywhere, without a warning: the program after every step, every refusal, and the proof at the end;
    nothing is written.
    """
    printed = output_of(EXAMPLES / name, tmp_path)
    golden(f"padding/{name.removesuffix('.py')}.txt", printed)
    proof = printed[printed.rindex("all together:") :]
    assert "refuted" not in proof and "unknown" not in proof and "vacuous" not in proof


def test_a_proof_is_of_a_step_that_was_taken() -> None:
    """The step whose obligations are shown must be there."""
    schedule = Schedule(copy())
    schedule.simplify()
    with pytest.raises(ValueError, match="no step is a split"):
        proof_text(schedule.steps, "split")
