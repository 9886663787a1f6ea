"""The way from a fresh machine to a gate in CI: the page has the commands that were run, and they end as it says."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from docs.fresh_machine import PAGE, STEPS, Step, Wrong, commands_of, run_all, run_step


def test_the_page_is_what_is_run() -> None:
    """The protocol in the page has every command, in order, with its exit code."""
    assert commands_of(PAGE.read_text(encoding="utf-8")) == [step.command for step in STEPS]


def test_a_command_that_ends_otherwise_is_told(tmp_path: Path) -> None:
    """Another exit code than expected, or other words, end the protocol; the folder and PATH carry over."""
    environment = {"HOME": str(tmp_path), "PATH": os.defpath}
    for step in (Step("false"), Step("true", code=1), Step("echo a", says="b")):
        with pytest.raises(Wrong):
            run_step(step, tmp_path, environment)
    (tmp_path / "inner").mkdir()
    _, place, after = run_step(Step("cd inner; PATH=/x:$PATH; false", code=1), tmp_path, environment)
    assert place == tmp_path / "inner" and after["PATH"].startswith("/x:")


@pytest.mark.pages
def test_the_protocol(tmp_path: Path) -> None:
    """In an empty environment every command after the installation ends as the page says: a wrong change fails CI."""
    ran = list(run_all(tmp_path, os.environ["PATH"], Path(sys.executable).parent))
    assert [each.step for each in ran] == [step for step in STEPS if not step.installs]
    assert [each.step.code for each in ran if each.step.command == "./ci.sh"] == [0, 0, 1, 0]
