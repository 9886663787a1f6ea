"""Annotations of GitHub Actions: a workflow command for each of the worst findings, and one notice with the count of the run.

GitHub shows ten errors and ten warnings of a step and drops the others without a word, so no more are written. The rest stands in the
job's summary, a page of Markdown, where the runner gives a file for that.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import PurePath
from typing import TextIO

from layoutproof.cli.gate.outcome import Fate, Finding, Outcome, Place
from layoutproof.cli.gate.paths import steady_path
from layoutproof.cli.gate.summary import Summary
from layoutproof.cli.render.gate.job_summary import write_job_summary
from layoutproof.cli.render.gate.ranking import count_ranks, rank_of, worst_first
from layoutproof.cli.render.gate.wording import finding_lines, one_line, printable, shortened, status_word, summary_line
from layoutproof.ir.diagnostic import counted

# Of one step, of each kind: actions/toolkit, docs/problem-matchers.md. A whole job has 50, so there is room for two more such steps.
MOST_ANNOTATIONS = 10
_TITLE = 200
_MESSAGE = 4_000
_FAILURES = range(rank_of(Fate.ALLOWED))
_SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"


def render_github(outcomes: Iterable[Outcome], summary: Summary, out: TextIO) -> None:
    """Write at most ten errors (what fails the run) and ten warnings (unknowns that are allowed), the worst first, and one notice.

    Where the environment names a file for the job's summary, that is added to. Raises LayoutproofError where it cannot be.
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
    """The place as properties. Columns go with a place on one line only: the runner drops others."""
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
    """A path from the root of the checkout, which is not the working directory of a step that runs in a folder of it."""
    whole = os.path.abspath(path)
    root = os.environ.get("GITHUB_WORKSPACE")
    if root and PurePath(whole).is_relative_to(root):
        return PurePath(whole).relative_to(root).as_posix()
    return steady_path(path)


def _command(kind: str, properties: Mapping[str, str], message: str) -> str:
    """A workflow command: `::error file=a.py,line=3::message`, with what would end a property or the command escaped."""
    texts = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{kind} {texts}::{_data(message)}\n"


def _data(text: str) -> str:
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
