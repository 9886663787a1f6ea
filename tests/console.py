"""Blocks of a console in documentation, run as they stand: files that are shown are written, commands are called,
output is compared.

A block is fenced as `console`. `$ cat NAME` shows a file, which is thereby written; `$ layoutproof ...` is called in
this process; `$ python NAME.py` runs a file that was shown. `NAME=VALUE` before a command sets the environment for it,
and `\\` at the end of a line goes on in the next. What stands below a command is its output, of which lines may be left
out, marked by `...` or not.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shlex
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from layoutproof.cli.gate.check_items import Item, Options
from layoutproof.cli.gate.judging import cached_proofs as judging
from layoutproof.cli.gate.outcomes import Outcome
from layoutproof.cli.gate.workers.item_limits import Judge
from layoutproof.cli.main import main
from layoutproof.ir.diagnostic import LayoutproofError

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SETTING = re.compile(r"[A-Z_]+=.*")


@dataclass(frozen=True)
class Entry:
    """A command of a console, and the lines shown below it."""

    command: str
    shown: tuple[str, ...]


def blocks(markdown: str) -> list[str]:
    """What stands in each console block of a text."""
    return _BLOCK.findall(markdown)


def entries(block: str) -> Iterator[Entry]:
    """The commands of a block with what is shown below each."""
    command: str | None = None
    shown: list[str] = []
    for line in block.splitlines():
        if command is not None and command.endswith("\\"):
            command = f"{command[:-1].rstrip()} {line.strip()}"
        elif line.startswith("$ "):
            if command is not None:
                yield Entry(command, tuple(shown))
            command, shown = line[2:], []
        else:
            assert command is not None, f"a console block begins with a command, not with {line!r}"
            shown.append(line)
    if command is not None:
        yield Entry(command, tuple(shown))


@dataclass(frozen=True)
class Console:
    """Runs blocks in the current folder."""

    monkeypatch: pytest.MonkeyPatch

    def run(self, block: str) -> str:
        """Everything that the commands of a block print. Fails where a line that is shown is not printed, in order."""
        said: list[str] = []
        for entry in entries(block):
            words = shlex.split(entry.command)
            if words[0] == "cat":
                Path(words[1]).parent.mkdir(parents=True, exist_ok=True)
                Path(words[1]).write_text("\n".join(entry.shown) + "\n", encoding="utf-8")
                continue
            printed = self.call(words)
            compare(entry, printed)
            said.append(printed)
        return "".join(said)

    def call(self, words: list[str]) -> str:
        """What one command prints, on both streams in one."""
        said = io.StringIO()
        with self.monkeypatch.context() as patch, contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            while _SETTING.fullmatch(words[0]):
                name, _, value = words.pop(0).partition("=")
                patch.setenv(name, value)
            if words[0] == "layoutproof":
                self._alone(patch, words)
                main(words[1:])
            elif words[0] == "python":
                self._python(Path(words[1]))
            else:
                raise AssertionError(f"a console block calls layoutproof, python and cat, not {words[0]}")
        return said.getvalue()

    def _alone(self, patch: pytest.MonkeyPatch, words: list[str]) -> None:
        """Let `check` judge in this process, which takes a tenth of the time: unless an option is about the processes
        that it uses.
        """
        # A process keeps the caches that it opened, by places that may be relative; here each folder is a machine of
        # its own.
        judging._opened.cache_clear()
        if words[1] == "check" and {"--timeout", "--memory", "--budget", "--workers"}.isdisjoint(words):
            patch.setattr("layoutproof.cli.gate_run.run_items", _in_this_process)

    def _python(self, script: Path) -> None:
        with self.monkeypatch.context() as patch:
            patch.syspath_prepend(str(script.parent))
            try:
                runpy.run_path(str(script), run_name="__main__")
            except LayoutproofError as problem:  # a script's end, which Python prints after where it was
                print("".join(traceback.format_exception_only(problem)))


def _in_this_process(items: Iterator[Item], judge: Judge, options: Options, limits: object) -> Iterator[Outcome]:
    return (judge(item, options) for item in items)


def compare(entry: Entry, printed: str) -> None:
    """Each line shown is a line that was printed, in order."""
    lines = iter(line.rstrip() for line in printed.splitlines())
    for wanted in entry.shown:
        pattern = re.escape(wanted.rstrip()).replace(re.escape("..."), ".*")
        if wanted.strip() in ("", "..."):
            continue
        assert any(re.fullmatch(pattern, line) for line in lines), (
            f"$ {entry.command}\ndoes not print\n{wanted}\nbut\n{printed}"
        )
