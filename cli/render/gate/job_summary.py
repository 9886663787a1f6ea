"""The summary of a job on GitHub: Markdown with the count of the run and a table of findings, added to what the job wrote before."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from layoutproof.cli import codes
from layoutproof.cli.gate.outcome import Fate, Finding, Outcome
from layoutproof.cli.gate.summary import Summary
from layoutproof.cli.render.gate.ranking import count_ranks, rank_of, worst_first
from layoutproof.cli.render.gate.wording import headline, one_line, printable, shortened, status_word, summary_line
from layoutproof.ir.diagnostic import counted, error

# GitHub refuses a longer one whole: docs.github.com, "Workflow commands", "Adding a job summary".
MOST_BYTES = 1 << 20
MOST_ROWS = 1_000  # more is no page that anybody reads
_CELL = 400
_MARKS = re.compile(r"([\\`*_{}\[\]<>()#+!|&~@$:-])")
_TABLE = "| | code | item | place | what |\n|---|---|---|---|---|\n"
_LAST = 200  # bytes kept free for the line that tells how many rows are missing


def write_job_summary(outcomes: Iterable[Outcome], summary: Summary, path: str) -> None:
    """Add the page to a file, as much of it as GitHub takes with what is there already.

    Raises LayoutproofError where the file cannot be written to.
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
    """The page in parts, at most `most_bytes` of UTF-8 together: nothing where not even its first lines fit."""
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
    """The text as itself: no character of it is a mark of Markdown, ends a cell or begins a tag."""
    return _MARKS.sub(r"\\\1", printable(text))
