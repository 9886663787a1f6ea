"""GitHub's annotations: read back by the rules of the runner, within what GitHub shows; and the job's summary, within
what it takes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from tests.cli.gate.strategies import RUNS
from tests.cli.render.gate.made import EVERYTHING, finding, many, outcome, summary_of
from tests.conftest import Golden
from tests.shares import one_in

from layoutproof.cli.gate.outcomes import Fate, Finding, Outcome, Place
from layoutproof.cli.render.gate.finding_texts import findings_of
from layoutproof.cli.render.gate.github import (
    MOST_ANNOTATIONS,
    MOST_BYTES,
    MOST_ROWS,
    job_summary,
    render_github,
    write_job_summary,
)
from layoutproof.ir.diagnostic import LayoutproofError

COMMAND = re.compile(r"::(error|warning|notice) ([^:\n]*)::([^\n\r]*)")


@dataclass(frozen=True)
class Annotation:
    """A workflow command, unescaped as the runner does."""

    kind: str
    properties: dict[str, str]
    message: str


@pytest.fixture(autouse=True)
def outside_of_github(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that run on GitHub themselves write no summary of theirs."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)


def read(text: str) -> list[Annotation]:
    """The annotations in a log; every line must be one."""
    assert text.endswith("\n")
    found = []
    for line in text.removesuffix("\n").split("\n"):
        command = COMMAND.fullmatch(line)
        assert command is not None, line
        pairs = [pair.split("=", 1) for pair in command[2].split(",")]
        properties = {key: unescaped(value, {"%3A": ":", "%2C": ","}) for key, value in pairs}
        assert len(properties) == len(pairs)
        found.append(Annotation(command[1], properties, unescaped(command[3], {})))
    return found


def unescaped(text: str, more: dict[str, str]) -> str:
    """The text that was escaped: `%25` comes last, so that what it makes is not read again."""
    for code, character in {"%0D": "\r", "%0A": "\n", **more, "%25": "%"}.items():
        text = text.replace(code, character)
    return text


def annotated(outcomes: Sequence[Outcome]) -> list[Annotation]:
    """What the renderer writes, read back."""
    out = StringIO()
    render_github(outcomes, summary_of(outcomes), out)
    out.getvalue().encode("utf-8")
    return read(out.getvalue())


def only(*findings: Finding) -> Annotation:
    """The annotation of an outcome's one finding."""
    [first, _] = annotated([outcome(*findings)])
    return first


@one_in(9)
@given(RUNS)
def test_any_run_can_be_read_by_the_runner(run: list[Outcome]) -> None:
    """Whatever texts outcomes hold: a command a line, at most ten of a kind, whose places the runner does not drop; one
    notice, last.
    """
    found = annotated(run)
    kinds = [one.kind for one in found]
    failing = sum(one.fate is Fate.FAILS for out in run for one in findings_of(out))
    allowed = sum(one.fate is Fate.ALLOWED for out in run for one in out.findings)
    assert kinds == ["error"] * min(failing, 10) + ["warning"] * min(allowed, 10) + ["notice"]
    for one in found:
        place = one.properties
        assert set(place) <= {"file", "line", "endLine", "col", "endColumn", "title"}
        assert len(place["title"]) <= 200 and len(one.message) <= 4_000
        line, end = int(place.get("line", 1)), int(place.get("endLine", place.get("line", 1)))
        assert line <= end and (line == end or "col" not in place)
        assert int(place.get("col", 1)) <= int(place.get("endColumn", place.get("col", 1)))


def test_everything(golden: Golden) -> None:
    """The annotations of a run with everything in it are those that were looked at."""
    out = StringIO()
    render_github(EVERYTHING, summary_of(EVERYTHING), out)
    golden("gate/everything.github.txt", out.getvalue())


def test_texts_come_back() -> None:
    """Percent signs, colons, commas, line ends and what looks like an escape or a command are the text that they
    were.
    """
    name = "gates.py::f[a,b%3A]"
    text = "100%: a, b%0A::error::no\r\nsecond\rthird %25"
    [one, _] = annotated([outcome(finding(message=text, place=Place("a,b:c%.py", 3)), name=name)])
    assert one.message == "100%: a, b%0A::error::no\nsecond\nthird %25"
    assert one.properties["title"] == f"LP221 refuted: {name}" and one.properties["file"] == "a,b:c%.py"


@pytest.mark.parametrize(
    ("place", "properties"),
    [
        (Place("a.py", 3), {"line": "3", "col": "1"}),
        (Place("a.py", 3, 5, 3, 9), {"line": "3", "col": "5", "endLine": "3", "endColumn": "9"}),
        (Place("a.py", 3, 5, 6, 2), {"line": "3", "endLine": "6"}),
    ],
)
def test_places(place: Place, properties: dict[str, str]) -> None:
    """Columns are given for places on one line; the runner would drop them for others."""
    found = dict(only(finding(place=place)).properties)
    assert found.pop("title") and found == {"file": "a.py", **properties}


def test_paths_are_those_of_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that runs in a folder of the checkout annotates files by their path from its root."""
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    assert only(finding(place=Place("./gates.py", 1))).properties["file"] == "sub/gates.py"
    assert only(finding(place=Place("../up.py", 1))).properties["file"] == "up.py"
    assert only(finding(place=Place("/elsewhere/x.py", 1))).properties["file"] == "/elsewhere/x.py"


def test_a_finding_without_a_place() -> None:
    """Such a finding is annotated at its item, and without a file where that has no place either."""
    assert only(finding(place=None)).properties["file"] == "gates.py"
    [one, _] = annotated([EVERYTHING[2]])
    assert set(one.properties) == {"title"}


@one_in(4)
def test_thirty_thousand_findings() -> None:
    """Ten errors are written, the worst; the notice tells how many were not."""
    outcomes = list(many(30_000))
    found = annotated(outcomes)
    assert [one.kind for one in found] == ["error"] * MOST_ANNOTATIONS + ["notice"]
    assert all(" refuted: " in one.properties["title"] for one in found[:-1])
    failing = sum(not one.passes for one in outcomes)
    assert (
        found[-1].message.startswith("30000 checked: ")
        and f"{failing - 10} findings are not annotated" in found[-1].message
    )


def test_warnings_have_their_own_ten() -> None:
    """Unknowns that are allowed are warnings, and take no place of an error."""
    allowed = finding("LP230", "unknown", fate=Fate.ALLOWED)
    found = annotated([outcome(*[allowed] * 15), outcome(*[finding()] * 12)])
    assert [one.kind for one in found] == ["error"] * 10 + ["warning"] * 10 + ["notice"]
    assert "7 findings are not annotated" in found[-1].message


def test_a_clean_run_is_one_notice() -> None:
    """A run in which all is proved says so, and nothing else."""
    [notice] = annotated([outcome(), outcome()])
    assert notice.kind == "notice" and notice.message == "2 checked: 2 proved; all pass"


def test_the_summary_of_everything(golden: Golden) -> None:
    """The page for a run with everything in it is the one that was looked at."""
    golden("gate/everything.summary.md", "".join(job_summary(EVERYTHING, summary_of(EVERYTHING))))


@one_in(4)
@given(RUNS)
def test_a_summary_is_a_table_whatever_it_holds(run: list[Outcome]) -> None:
    """Each row has five cells, whatever bars, line ends and marks stand in the texts, and is UTF-8."""
    page = "".join(job_summary(run, summary_of(run)))
    page.encode("utf-8")
    rows = [line for line in page.split("\n") if line.startswith("| ")]
    wanted = sum(one.fate in (Fate.FAILS, Fate.ALLOWED) for out in run for one in findings_of(out))
    assert len(rows) == (wanted + 1 if wanted else 0)
    for row in rows:
        assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == 6


def test_a_summary_fits_what_github_takes(tmp_path: Path) -> None:
    """Rows stop before the file is too large, also with what was in it, and the last line counts those that are
    missing.
    """
    path = tmp_path / "summary.md"
    path.write_text("# before\n" + "y" * (MOST_BYTES - 20_000), encoding="utf-8")
    run = [outcome(finding(message="é" * 300)) for _ in range(200)]
    write_job_summary(run, summary_of(run), str(path))
    text = path.read_text(encoding="utf-8")
    assert MOST_BYTES - 1_000 < path.stat().st_size <= MOST_BYTES and text.startswith("# before\n")
    rows = text.count("refuted | LP221")
    assert 0 < rows < 200 and f"{200 - rows} more findings are not listed here." in text


def test_a_summary_with_no_room(tmp_path: Path) -> None:
    """A file that is full already is left as it is."""
    path = tmp_path / "summary.md"
    path.write_bytes(b"z" * (MOST_BYTES - 10))
    write_job_summary(EVERYTHING, summary_of(EVERYTHING), str(path))
    assert path.stat().st_size == MOST_BYTES - 10


def test_a_summary_of_very_many_findings() -> None:
    """A thousand rows are listed, the worst first, and the others counted."""
    outcomes = list(many(4_000))
    page = "".join(job_summary(outcomes, summary_of(outcomes)))
    statuses = re.findall(r"^\| (refuted|error|unknown|vacuous) ", page, re.MULTILINE)
    assert len(statuses) == MOST_ROWS and statuses == sorted(
        statuses, key=["refuted", "error", "unknown", "vacuous"].index
    )
    failing = sum(not one.passes for one in outcomes)
    assert page.endswith(f"{failing - MOST_ROWS} more findings are not listed here.\n")


def test_the_runner_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With GITHUB_STEP_SUMMARY the page is added to that file; one that cannot be written to is an error that names the
    variable.
    """
    path = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    assert [one.kind for one in annotated([outcome(finding())])] == ["error", "notice"]
    annotated([outcome()])
    text = path.read_text(encoding="utf-8")
    assert text.index("the gate fails") < text.index("the gate passes")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "no" / "folder"))
    with pytest.raises(LayoutproofError) as caught:
        annotated([outcome()])
    assert caught.value.diagnostics[0].code == "LP538" and "GITHUB_STEP_SUMMARY" in caught.value.diagnostics[0].message
