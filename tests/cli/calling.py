"""Calling the command line in this process, and what a golden file keeps of what it says."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.tree import ROOT

from layoutproof.cli.main import main

DATA = ROOT / "tests" / "data"
OPERATORS = DATA / "operators"


@dataclass(frozen=True)
class Outcome:
    """What a call left behind."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


class Caller:
    """`call("map", ...)`: run the command line, capture everything."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Outcome:
        self._capsys.readouterr()
        code = main(arguments)
        captured = self._capsys.readouterr()
        assert "Traceback" not in captured.err + captured.out
        return Outcome(code, captured.out, captured.err)


def steady(text: str, folder: Path | None = None) -> str:
    """A text without what differs from run to run: times, and the folder of the test."""
    text = re.sub(r"\b\d+(\.\d+)? (ms|s)\b", "T", text)
    if folder is None:
        return text
    # Paths below the working directory are shown as relative to it.
    text, relative = text.replace(str(folder), "FOLDER"), os.path.relpath(folder)
    return text if relative.startswith(".") else text.replace(relative, "FOLDER")


def files_below(folder: Path) -> dict[str, bytes]:
    """Every file and its content."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }
