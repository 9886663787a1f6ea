"""The README is true: its commands run and end as they should, and print what it shows; its Python runs; its links lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.calling import Caller, steady
from tests.tree import ROOT

PAGE = ROOT / "README.md"
README = PAGE.read_text(encoding="utf-8")
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "proofs/README.md")
REFUTED = "layoutproof check proofs/refuted/order_interchanged.py"
# Continuous integration runs these, after the tests.
LONG = ("layoutproof recheck proofs/",)
COMMANDS = re.findall(r"^ {4}(layoutproof .*?)(?: {2,}.*)?$", README, re.MULTILINE)
SESSIONS = re.findall(r"^```console\n\$ (.*)\n((?:.*\n)*?)```$", README, re.MULTILINE)
PYTHON = re.findall(r"^```python\n((?:.*\n)*?)```$", README, re.MULTILINE)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Caller:
    """A function that runs the command line in this process."""
    return Caller(capsys)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like the repository to whoever follows the README; what they write stays in it."""
    for name in ("examples", "proofs"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(text: str) -> Iterator[str]:
    """Every command in a text that starts like one of ours."""
    yield from (part for part in re.findall(r"`(layoutproof [^`]*)`", text))


def test_what_the_readme_holds() -> None:
    """The patterns above find what is there: nothing in a block goes unlooked at."""
    assert README.count("```") == 2 * (len(SESSIONS) + len(PYTHON))
    assert README.count("    layoutproof ") == len(COMMANDS)
    assert set(LONG) <= set(COMMANDS) and (ROOT / ".ci" / "run").read_text().count("make recheck") == 1
    assert list(told(README)) == []


def test_commands_run(call: Caller, checkout: Path, request: pytest.FixtureRequest) -> None:
    """Each command, in the order in which a reader meets them, ends well; one that is to be refuted ends with 1.

    With --update-golden, what the README shows is written anew.
    """
    shown = dict(SESSIONS)
    update = bool(request.config.getoption("--update-golden"))
    for command in re.findall(r"^(?: {4}|\$ )(layoutproof .*?)(?: {2,}.*)?$", README, re.MULTILINE):
        if command in LONG:
            continue
        outcome = call(*shlex.split(command)[1:])
        assert outcome.code == (1 if command == REFUTED else 0), outcome.err
        if command in shown and update:
            text = PAGE.read_text(encoding="utf-8")
            PAGE.write_text(text.replace(shown[command], re.sub(r"\b\d+(\.\d+)? ms\b", "10 ms", outcome.out)), encoding="utf-8")
        elif command in shown:
            assert steady(outcome.out) == steady(shown[command])


@pytest.mark.parametrize("block", PYTHON)
def test_python_runs(checkout: Path, block: str) -> None:
    """Each block of Python is a script that runs from the repository's folder."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", block], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    """Every link to a file of ours names one that is there."""
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES)
def test_make_targets_are_there(page: str) -> None:
    """Every `make` target that a page names exists."""
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {*re.findall(r"`make ([a-z]+)", text), *re.findall(r"^    make ([a-z]+)", text, re.MULTILINE)}
    assert named <= targets
