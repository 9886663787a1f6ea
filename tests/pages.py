"""What the tests of README and docs share: the blocks of a page, sessions that are run and compared, files that a
reader writes.

A page shows commands in blocks of `console`, each command behind `$ `, with all that it prints below it; a line `...`
stands for any lines. `<!-- exit 1 -->` on the line above a block says how its last command ends. A block of Python is a
script; a block with a caption is a file that the reader writes, and what follows may use it. A block under `<!-- prints
-->` is what the script before it prints.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.calling import Caller, steady
from tests.console import entries
from tests.tree import ROOT

_FENCE = re.compile(r"^(?P<ticks>`{3,})(?P<info>[^`]*)$")
_ANNOUNCED = re.compile(r"^<!-- (?:exit (?P<code>\d)|(?P<prints>prints)) -->$")
_OPTION = re.compile(r"^:([a-z-]+): *(\S*)$")
_CACHED = re.compile(r"; \d+ from the cache\b")
_TIMES = re.compile(r"\b\d+(\.\d+)? (ms|s)\b")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the file that it is (if it is one), its text, and the line of the page that it
    begins on.

    `code` is the exit code that is announced, `prints` whether it is what the script before it prints.
    """

    language: str
    file: str | None
    text: str
    line: int
    code: int = 0
    prints: bool = False


@dataclass(frozen=True)
class Session:
    """A command, what is shown below it, and how it ends."""

    command: str
    shown: str
    code: int


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        opened = _FENCE.match(lines[number])
        if opened is not None:
            end = lines.index(opened["ticks"], number + 1)
            announced = _ANNOUNCED.match(lines[number - 1]) if number else None
            yield _block(opened["info"].strip(), lines[number + 1 : end], number + 1, announced)
            number = end
        number += 1


def _block(info: str, body: list[str], line: int, announced: re.Match[str] | None) -> Block:
    file = None
    if info.startswith("{code-block}"):
        info = info.removeprefix("{code-block}").strip()
        while body and (option := _OPTION.match(body[0])) is not None:
            file = option[2] if option[1] == "caption" else file
            body = body[1:]
        body = body[1:] if body and not body[0] else body
    code = int(announced["code"]) if announced is not None and announced["code"] else 0
    prints = announced is not None and announced["prints"] is not None
    return Block(info, file, "".join(f"{text}\n" for text in body), line, code, prints)


def sessions(block: Block) -> list[Session]:
    """The commands of a block of `console`, each with what it prints; the exit code that is announced is that of the
    last.
    """
    found = list(entries(block.text))
    codes = [0] * (len(found) - 1) + [block.code]
    return [Session(e.command, "".join(f"{s}\n" for s in e.shown), code) for e, code in zip(found, codes, strict=True)]


def agrees(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed, times and hits of the cache aside, and lines aside for which it has
    `...`.
    """
    pattern = re.escape(_steady(shown)).replace(re.escape("...\n"), "(?:.*\n)*?")
    return re.fullmatch(pattern, _steady(printed)) is not None


def _steady(text: str) -> str:
    return _CACHED.sub("", steady(text))


def run_command(command: str, code: int, call: Caller) -> str:
    """Run a command of ours in this process and give what it printed, errors last; it must end with `code`."""
    arguments = shlex.split(command)
    assert arguments[0] == "layoutproof", command
    outcome = call(*arguments[1:])
    assert outcome.code == code, f"{command}\nended with {outcome.code}, not {code}\n{outcome.out}{outcome.err}"
    return outcome.out + outcome.err


def run_script(text: str) -> str:
    """Run a script from the folder that is current; it must end well, without a warning. Gives what it printed."""
    # Where the environment is active, its commands are found by name.
    found = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", text], env=found, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def with_printed(page: str, session: Session, printed: str) -> str:
    """The page, showing what was printed; times are made alike, so that a page does not change where only they do."""
    shown = f"$ {session.command}\n{session.shown}```"
    assert shown in page
    return page.replace(shown, f"$ {session.command}\n{_TIMES.sub('10 ms', _abridged(session.shown, printed))}```")


def _abridged(shown: str, printed: str) -> str:
    """What was printed, with `...` where the page has it: for each run of lines that is shown, the printed run most
    like it.
    """
    lines, runs = printed.splitlines(keepends=True), shown.split("...\n")
    kept, end = list[str](), 0
    for number, run in enumerate(runs):
        size = run.count("\n")
        last = len(lines) - size
        starts = range(last if run and number == len(runs) - 1 else end, last + 1) if number else range(1)
        start = max(starts, key=lambda at: _likeness(run, "".join(lines[at : at + size])), default=end)
        end = start + size
        kept.append("".join(lines[start:end]))
    abridged = "...\n".join(kept)
    return abridged if agrees(abridged, printed) else printed


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()


def like_a_checkout(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder look like the repository to the commands of a page; what they write stays in it."""
    for name in ("examples", "proofs"):
        (folder / name).symlink_to(ROOT / name)
    monkeypatch.chdir(folder)
    return folder


def links(path: Path) -> Iterator[tuple[str, str]]:
    """File and heading of every link of a page to something of ours."""
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            file, _, heading = target.partition("#")
            yield file, heading


def anchors(path: Path) -> set[str]:
    """The places of a page that a link may name: its headings, written as links write them, and targets."""
    text = "\n".join(line for line in _prose(path.read_text(encoding="utf-8").split("\n")))
    headings = re.findall(r"^#{1,6} +(.*?)\s*$", text, re.MULTILINE)
    return {_slug(heading) for heading in headings} | set(re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE))


def _prose(lines: list[str]) -> Iterator[str]:
    """The lines outside of fenced blocks."""
    inside: str | None = None
    for line in lines:
        opened = _FENCE.match(line)
        if inside is None and opened is not None:
            inside = opened["ticks"]
        elif inside is not None:
            inside = None if line == inside else inside
        else:
            yield line


def _slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def output_of(script: Path, folder: Path) -> str:
    """What an example prints when it is run from an empty folder, which it leaves empty."""
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    command = [sys.executable, str(script)]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert list(folder.iterdir()) == []
    return done.stdout
