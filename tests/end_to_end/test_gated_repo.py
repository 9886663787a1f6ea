"""The sample repository's CI script passes as it stands, and fails as its page says for each of the changes under
`broken`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.tree import ROOT

from layoutproof.cli import codes as cli
from layoutproof.ir import codes as script
from layoutproof.lowering import codes as lowering
from layoutproof.verify.verdict import codes as verify

pytestmark = pytest.mark.pages

SAMPLE = ROOT / "examples" / "gated-repo"
PAGE = (SAMPLE / "README.md").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Failure:
    """How CI ends: its exit code, and of one annotation the code, the place, and texts that its message holds."""

    exit_code: int
    code: str
    file: str
    line: str
    said: tuple[str, ...]


BROKEN: Mapping[str, Failure] = {
    "non_injective_map": Failure(
        1,
        lowering.NOT_INJECTIVE,
        "gates.py",
        'schedule.transform_layout("conv", "A", nchwc(4))',
        (
            "`lambda n, h, w, c: [n, c//4, h, w]` is not injective on A",
            "[0, 0, 0, 0] and [0, 0, 0, 1] both go to [0, 0, 0, 0]",
        ),
    ),
    "wrong_pad_value": Failure(
        1,
        lowering.PAD_VALUE,
        "gates.py",
        'schedule.remove_branching_through_overcompute("sum")',
        ("row_sum with m = 1: `B[0]`: expected 0.0", "got 3.0", "`layoutproof pad-values` tries other values"),
    ),
    "unsafe_branch": Failure(
        1,
        lowering.BRANCH_NEEDED,
        "gates.py",
        'schedule.remove_branching_through_overcompute("sum")',
        ("is padding without a contract", "programs/row_sum.py:13:13: in the program"),
    ),
    "forgotten_channels": Failure(
        1,
        verify.OTHER_END,
        "gates.py",
        "def generated_scale() -> object:",
        (
            "scale_nchw4c does not do what scale does",
            "no such store",
            "programs/scale.py:10:13: before, the cell was stored here",
        ),
    ),
    "unknown": Failure(
        3, verify.UNDECIDED, "gates.py", "def wavefront_scores() -> object:", ("is not decided: a product of two",)
    ),
    "vacuous_assumption": Failure(
        3,
        verify.VACUOUS,
        "gates.py",
        "def blocked_image(lanes: int) -> object:",
        ("no values of the symbols satisfy the side condition",),
    ),
    "syntax_error_in_gates": Failure(
        2,
        cli.GATE_FILE,
        "gates.py",
        'schedule.transform_layout("conv", "C", nchwc(4)',
        ("not Python: '(' was never closed",),
    ),
    "syntax_error_in_program": Failure(2, script.SYNTAX, "programs/matmul.py", "T.grid(30, 50, 24)", ("expected ':'",)),
}

_ANNOTATION = re.compile(
    r"^::error file=(?P<file>[^,]+),line=(?P<line>\d+),.*?title=(?P<code>LP\d+)[^:]*::(?P<message>.*)$", re.MULTILINE
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A copy of the sample repository, to be broken."""
    return shutil.copytree(
        SAMPLE, tmp_path / "repository", ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache")
    )


def ci(folder: Path, *arguments: str, github: bool = False) -> subprocess.CompletedProcess[str]:
    """Run the repository's CI script, on GitHub or elsewhere, with this Python's layoutproof."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("GITHUB_")}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    if github:
        environment |= {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(folder.parent / "summary.md")}
    command = [str(folder / "ci.sh"), "--workers", "1", *arguments]
    # Called from elsewhere: the script finds its own folder.
    return subprocess.run(
        command, cwd=folder.parent, env=environment, capture_output=True, text=True, timeout=240, check=False
    )


def test_the_repository_passes(repository: Path) -> None:
    """As it stands, everything is proved but one gate, which the baseline knows."""
    done = ci(repository)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("8 items: 1 unknown, 7 proved (findings: 1 in the baseline)")
    assert done.stderr == ""
    # As its page shows, where `...` stands for what is too long for a page; what came from the cache depends on earlier
    # runs.
    shown = PAGE.partition("$ ./ci.sh\n")[2].partition("```")[0]
    pattern = re.escape(shown.rstrip("\n")).replace(re.escape("..."), ".*") + "(; [0-9]+ from the cache)?\n"
    assert re.fullmatch(pattern, done.stdout), done.stdout


def test_without_its_baseline_it_fails(repository: Path) -> None:
    """The baseline is what lets the unknown gate pass, and nothing else."""
    (repository / "baseline.json").write_text('{"layoutproof_baseline": 2, "entries": []}\n', encoding="utf-8")
    done = ci(repository)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (
        3,
        f"1 fails the run; findings by code: {verify.UNDECIDED} 1 (`layoutproof explain CODE`)",
    )


def test_every_change_is_tried() -> None:
    """Each patch under `broken` has its failure here, and each failure its patch."""
    assert {path.stem for path in (SAMPLE / "broken").iterdir()} == set(BROKEN)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_repository_fails(name: str, repository: Path) -> None:
    """CI ends with the exit code, and GitHub shows the code, the message and the line, of what was broken."""
    expected = BROKEN[name]
    subprocess.run(["git", "apply", f"broken/{name}.patch"], cwd=repository, check=True, timeout=60)
    done = ci(repository, "--report", f"text={repository.parent / 'report.txt'}", github=True)
    assert done.returncode == expected.exit_code, done.stdout + done.stderr
    found = [match for match in _ANNOTATION.finditer(done.stdout) if match["code"] == expected.code]
    assert found, done.stdout
    for match in found:
        assert match["file"] == expected.file
        assert (
            expected.line
            in (repository / match["file"]).read_text(encoding="utf-8").splitlines()[int(match["line"]) - 1]
        )
        message = match["message"].replace("%0A", "\n").replace("%25", "%")
        assert [text for text in expected.said if text not in message] == []
    # People without GitHub read the same.
    report = (repository.parent / "report.txt").read_text(encoding="utf-8")
    assert f"error[{expected.code}]" in report and expected.line in report
    summary = (repository.parent / "summary.md").read_text(encoding="utf-8")
    assert expected.code in summary


@pytest.mark.parametrize("name", BROKEN)
def test_the_page_tells_of_each_change(name: str) -> None:
    """The repository's page names each patch with the code and the exit code that it leads to."""
    (row,) = (line for line in PAGE.splitlines() if line.startswith(f"| `{name}.patch` |"))
    assert f"`{BROKEN[name].code}`" in row and row.rstrip().endswith(f"| {BROKEN[name].exit_code} |")
