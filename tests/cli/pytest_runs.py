"""pytest as users call it: in a process of its own, in a folder of theirs, with its report read back."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree


@dataclass(frozen=True)
class Run:
    """What a run of pytest ended with: exit code, output, and the outcome of each item by its id, with the reason of
    those not passed.
    """

    code: int
    text: str
    outcomes: Mapping[str, str]
    reasons: Mapping[str, str]


@dataclass(frozen=True)
class Team:
    """A folder in which pytest is called."""

    folder: Path

    def write(self, **files: str) -> None:
        """Write modules, by name."""
        for name, text in files.items():
            (self.folder / f"{name}.py").write_text(text, encoding="utf-8")

    def run(self, *arguments: str) -> Run:
        """Call pytest, with every warning an error, and read its report back."""
        report = self.folder / "report.xml"
        report.unlink(missing_ok=True)
        # Another plugin that is installed here takes a fifth of each run to load, and is not what is tried.
        others = ["-p", "no:hypothesispytest"]
        command = [
            sys.executable,
            "-W",
            "error",
            "-m",
            "pytest",
            "-c",
            "pytest.ini",
            *others,
            "--junitxml",
            str(report),
            *arguments,
        ]
        # pytest shows whole messages in its summary where it finds itself in CI.
        environment = {
            name: value for name, value in os.environ.items() if name not in ("CI", "BUILD_NUMBER", "COLUMNS")
        }
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=240, check=False
        )
        outcomes: dict[str, str] = {}
        reasons: dict[str, str] = {}
        for case in ElementTree.parse(report).iter("testcase") if report.exists() else ():
            name = f"{case.get('classname')}::{case.get('name')}"
            assert name not in outcomes, "an item is reported twice"
            (found,) = case.findall("*[@message]") or (None,)
            outcomes[name] = "passed" if found is None else found.get("type", found.tag)
            reasons[name] = "" if found is None else f"{found.get('message')}\n{found.text}"
        return Run(done.returncode, done.stdout + done.stderr, outcomes, reasons)
