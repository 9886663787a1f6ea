"""Annotations of GitHub Actions for the worst findings, and the Markdown summary of a job.

GitHub shows ten errors and ten warnings of a step; the summary has the rest.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path, PurePath
from typing import TextIO

from layoutproof.cli import codes
from layoutproof.cli.gate.outcomes import Fate, Finding, Outcome, Place, Summary, steady_path
from layoutproof.cli.render.gate.finding_texts import (
    count_ranks,
    finding_lines,
    headline,
    one_line,
    printable,
    rank_of,
    shortened,
    status_word,
    summary_line,
    worst_first,
)
from layoutproof.ir.diagnostic import counted, error

# GitHub refuses a longer one whole: docs.github.com, "Workflow commands", "Adding a job summary".
MOST_BYTES = 1 << 20
MOST_ROWS = 1_000  # more is no page that anybody reads
_CELL = 400
_MARKS = re.compile(r"([\\`*_{}\[\]<>()#+!|&~@$:-])")
_TABLE = "| | code | item | place | what |\n|---|---|---|---|---|\n"
_LAST = 200  # bytes kept free for the line that tells how many rows are missing


def write_job_summary(outcomes: Iterable[Outcome], summary: Summary, path: str) -> None:
    """Add the page to a file, up to GitHub's limit.

    Raises LayoutproofError if the file cannot be written.
    """
    try:
        there = Path(path).stat().st_size if os.path.exists(path) else 0
        with open(path, "a", encoding="utf-8") as file:
            for part in job_summary(outcomes, summary, MOST_BYTES - there):
                file.write(part)
    except (OSError, ValueError) as problem:  # ValueError: a null byte in the path
        why = problem.strerror if isinstance(problem, OSError) else str(problem)
        raise error(codes.JOB_SUMMARY, f"GITHUB_STEP_SUMMARY={path!r} cannot be written to: {why}") from problem


def job_summary(outcomes: Iterable[Outcome], summary: Summary, most_bytes: int = MOST_BYTES) -> Iterator[str]:
    """The page in parts, at most `most_bytes` of UTF-8 together; nothing if not even its first lines fit."""
    mark = "passes" if summary.exit_code == 0 else "fails"
    head = f"### layoutproof: the gate {mark}\n\n{_escaped(summary_line(summary))}\n\n"
    left = most_bytes - len(head.encode()) - _LAST
    if left < 0:
        return
    yield head
    ranks = count_ranks(outcomes)
    wanted = Counter({number: ranks[number] for number in range(rank_of(Fate.ALLOWED) + 1)})
    written = 0
    for outcome, finding in worst_first(outcomes, wanted):
        row = (_TABLE if not written else "") + _row(outcome, finding)
        left -= len(row.encode())
        if left < 0 or written == MOST_ROWS:
            break
        written += 1
        yield row
    missing = wanted.total() - written
    if missing:
        yield f"\n{counted(missing, 'more finding is', 'more findings are')} not listed here.\n"


def _row(outcome: Outcome, finding: Finding) -> str:
    place = finding.place if finding.place is not None else outcome.place
    where = f"{place.path}:{place.line}" if place is not None else outcome.program
    allowed = " (allowed)" if finding.fate is Fate.ALLOWED else ""
    cells = (f"{status_word(finding)}{allowed}", finding.code, outcome.name, where, headline(finding))
    return f"| {' | '.join(_escaped(shortened(one_line(cell), _CELL)) for cell in cells)} |\n"


def _escaped(text: str) -> str:
    """The text with all Markdown and HTML escaped."""
    return _MARKS.sub(r"\\\1", printable(text))


# Of one step, of each kind: actions/toolkit, docs/problem-matchers.md. A whole job has 50, so there is room for two
# more such steps.
MOST_ANNOTATIONS = 10
_TITLE = 200
_MESSAGE = 4_000
_FAILURES = range(rank_of(Fate.ALLOWED))
_SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"


def render_github(outcomes: Iterable[Outcome], summary: Summary, out: TextIO) -> None:
    """Write at most ten errors (what fails the run), ten warnings (allowed unknowns), worst first, and one notice.

    Adds to the job's summary if the environment names its file. Raises LayoutproofError if that fails.
    """
    ranks = count_ranks(outcomes)
    failures = sum(ranks[number] for number in _FAILURES)
    allowed = ranks[rank_of(Fate.ALLOWED)]
    found = worst_first(outcomes, ranks)
    for outcome, finding in islice(found, min(failures, MOST_ANNOTATIONS)):
        out.write(_annotation("error", outcome, finding))
    if allowed:
        only_allowed = Counter({rank_of(Fate.ALLOWED): min(allowed, MOST_ANNOTATIONS)})
        for outcome, finding in worst_first(outcomes, only_allowed):
            out.write(_annotation("warning", outcome, finding))
    path = os.environ.get(_SUMMARY_VARIABLE)
    left = failures + allowed - min(failures, MOST_ANNOTATIONS) - min(allowed, MOST_ANNOTATIONS)
    words = summary_line(summary)
    if left:
        where = "; the job's summary lists them" if path else ""
        words += f". {counted(left, 'finding is', 'findings are')} not annotated, since GitHub shows no more{where}"
    out.write(_command("notice", {"title": "layoutproof"}, words))
    if path:
        write_job_summary(outcomes, summary, path)


def _annotation(kind: str, outcome: Outcome, finding: Finding) -> str:
    place = finding.place if finding.place is not None else outcome.place
    title = f"{finding.code} {status_word(finding)}: {outcome.name}"
    message = shortened("\n".join(finding_lines(finding)), _MESSAGE)
    return _command(kind, {**_properties(place), "title": shortened(one_line(title), _TITLE)}, message)


def _properties(place: Place | None) -> dict[str, str]:
    """The place as properties. Columns only for a place on one line: the runner drops others."""
    if place is None:
        return {}
    found = {"file": _path(place.path), "line": str(place.line)}
    if place.end_line > place.line:
        return {**found, "endLine": str(place.end_line)}
    found["col"] = str(place.column)
    if place.end_line == place.line and place.end_column >= place.column:
        found |= {"endLine": str(place.end_line), "endColumn": str(place.end_column)}
    return found


def _path(path: str) -> str:
    """A path from the root of the checkout; a step's working directory may be below it."""
    whole = os.path.abspath(path)
    root = os.environ.get("GITHUB_WORKSPACE")
    if root and PurePath(whole).is_relative_to(root):
        return PurePath(whole).relative_to(root).as_posix()
    return steady_path(path)


def _command(kind: str, properties: Mapping[str, str], message: str) -> str:
    """A workflow command: `::error file=a.py,line=3::message`, with delimiters escaped."""
    texts = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{kind} {texts}::{_data(message)}\n"


def _data(text: str) -> str:
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
