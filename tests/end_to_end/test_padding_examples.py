"""The seven ways of treating padding, as scripts: what they print is what they promise, to the letter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Golden
from tests.lowering.programs import copy
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
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    golden(f"padding/{name.removesuffix('.py')}.txt", done.stdout)
    proof = done.stdout[done.stdout.rindex("all together:") :]
    assert "refuted" not in proof and "unknown" not in proof and "vacuous" not in proof
    assert list(tmp_path.iterdir()) == []


def test_a_proof_is_of_a_step_that_was_taken() -> None:
    """The step whose obligations are shown must be there."""
    schedule = Schedule(copy())
    schedule.simplify()
    with pytest.raises(ValueError, match="no step is a split"):
        proof_text(schedule.steps, "split")
