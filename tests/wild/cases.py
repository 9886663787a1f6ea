"""The cases under tests/data/wild: what happened, and the questions with their wanted verdicts.

A folder a case: `README.md` tells the bug and how it was restated, `case.json` has the questions, and `check.py` is the
evidence, the same programs written by hand in numpy. A question is one for `compare`, of two programs, or for `map`.
"""

from __future__ import annotations

import json
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from layoutproof.cli.main import main
from tests.tree import ROOT

FOLDER = ROOT / "tests" / "data" / "wild"
VERDICTS = {0: "proved", 1: "refuted", 3: "unknown"}


@dataclass(frozen=True)
class Question:
    """One question of a case."""

    case: str
    name: str
    kind: str
    files: tuple[Path, ...]
    options: tuple[str, ...]
    wanted: str

    @property
    def title(self) -> str:
        """The case and the question."""
        return f"{self.case}/{self.name}"

    def asked(self) -> Answer:
        """The answer of the command line, called in this process."""
        is_map = self.kind == "map"
        given = (
            [self.files[0].read_text().strip()] if is_map else [*map(str, self.files), "--no-cache", "--timeout", "0"]
        )
        text, start = StringIO(), time.perf_counter()
        with redirect_stdout(text), redirect_stderr(text):
            code = main([self.kind, *given, *self.options])
        return Answer(VERDICTS.get(code, f"exit {code}"), time.perf_counter() - start, text.getvalue())


@dataclass(frozen=True)
class Answer:
    """A verdict with its time and all that was printed."""

    verdict: str
    seconds: float
    text: str

    @property
    def counterexample(self) -> str:
        """The line that shows what differs; empty if nothing does."""
        words = ("expected", "both become", "faults", "outside", "out of", "index")
        lines = [line.strip() for line in self.text.splitlines()]
        shown = next((line for word in words for line in lines if word in line and "error[" not in line), "")
        return shown.replace("|", "/")[:160] if self.verdict == "refuted" else ""


@dataclass(frozen=True)
class Case:
    """One bug: where it was reported, what happened, and what is asked."""

    name: str
    repository: str
    thread: str
    url: str
    happened: str
    fidelity: str
    questions: tuple[Question, ...]


def cases() -> list[Case]:
    """All cases, by their names."""
    return [_case(path) for path in sorted(FOLDER.glob("*/case.json"))]


def _case(path: Path) -> Case:
    said: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    source, folder = said["source"], path.parent
    questions = (
        Question(
            said["id"],
            each["name"],
            each["kind"],
            tuple(folder / name for name in each["files"]),
            tuple(each["options"]),
            each["wanted"],
        )
        for each in said["questions"]
    )
    told = (folder / "README.md").read_text(encoding="utf-8").split("\n\n")[1]
    thread = f"{source['repository']}#{source['thread']}"
    happened = " ".join(told.split())
    return Case(said["id"], source["repository"], thread, source["url"], happened, said["fidelity"], tuple(questions))
