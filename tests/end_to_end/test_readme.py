"""The README is true: its commands run and end as they should, and print what it shows; its Python runs; its links lead
somewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.calling import Caller
from tests.pages import agrees, blocks, like_a_checkout, links, run_command, run_script, sessions, with_printed
from tests.tree import ROOT

PAGE = ROOT / "README.md"
README = PAGE.read_text(encoding="utf-8")
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "proofs/README.md")
REFUTED = "layoutproof check proofs/refuted/order_interchanged.py"
# Continuous integration runs these, after the tests.
LONG = ("layoutproof recheck proofs/",)
COMMANDS = re.findall(r"^ {4}(layoutproof .*?)(?: {2,}.*)?$", README, re.MULTILINE)
SESSIONS = {
    session.command: session for block in blocks(README) if block.language == "console" for session in sessions(block)
}
PYTHON = [block.text for block in blocks(README) if block.language == "python"]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Caller:
    """A function that runs the command line in this process."""
    return Caller(capsys)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like the repository, in which the README is followed; files stay in it."""
    return like_a_checkout(tmp_path, monkeypatch)


def told(text: str) -> Iterator[str]:
    """Every command that stands within a line of text."""
    yield from (part for part in re.findall(r"`(layoutproof [^`]*)`", text))


def test_what_the_readme_holds() -> None:
    """The patterns above find what is there: nothing in a block goes unlooked at."""
    assert len(list(blocks(README))) == len(SESSIONS) + len(PYTHON)
    assert README.count("    layoutproof ") == len(COMMANDS)
    assert set(LONG) <= set(COMMANDS) and (ROOT / ".ci" / "run").read_text().count("make recheck") == 1


@pytest.mark.pages
def test_commands_run(call: Caller, checkout: Path, request: pytest.FixtureRequest) -> None:
    """Each command, in the order in which a reader meets them, ends well; one that is to be refuted ends with 1.

    With --update-golden, what the README shows is written anew.
    """
    update = bool(request.config.getoption("--update-golden"))
    for command in re.findall(r"^(?: {4}|\$ )(layoutproof .*?)(?: {2,}.*)?$", README, re.MULTILINE):
        if command in LONG:
            continue
        printed = run_command(command, 1 if command == REFUTED else 0, call)
        if command in SESSIONS and not agrees(SESSIONS[command].shown, printed):
            assert update, f"$ {command}\nprints\n{printed}"
            PAGE.write_text(
                with_printed(PAGE.read_text(encoding="utf-8"), SESSIONS[command], printed), encoding="utf-8"
            )
    for command in told(README):
        run_command(command, 0, call)


@pytest.mark.pages
@pytest.mark.parametrize("block", PYTHON)
def test_python_runs(checkout: Path, block: str) -> None:
    """Each block of Python is a script that runs from the repository's folder."""
    run_script(block)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    """Every link to a file of ours names one that is there."""
    path = ROOT / page
    for target, _ in links(path):
        assert (path.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES)
def test_make_targets_are_there(page: str) -> None:
    """Every `make` target that a page names exists."""
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {*re.findall(r"`make ([a-z]+)", text), *re.findall(r"^    make ([a-z]+)", text, re.MULTILINE)}
    assert named <= targets
