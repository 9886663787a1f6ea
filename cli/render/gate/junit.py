"""JUnit's XML, as Jenkins, GitLab and most other CI systems read it: a test suite per file, a test case per item."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO
from xml.sax.saxutils import escape, quoteattr

from layoutproof.cli.gate.outcomes import Fate, Finding, Outcome, Summary
from layoutproof.cli.gate.policy import file_of
from layoutproof.cli.render.gate.finding_texts import (
    again,
    fate_words,
    finding_lines,
    findings_of,
    headline,
    plain_lines,
    rank,
    shortened,
    status_word,
)
from layoutproof.ir.diagnostic import counted

# What XML 1.0 cannot hold at all, and the control characters that it can but terminals act on.
_ILLEGAL = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0010fffd]")
_MESSAGE = 500
_TEXT = 20_000
_ELEMENTS = {"failures": "failure", "errors": "error", "skipped": "skipped"}


@dataclass(slots=True)
class _Suite:
    """Consecutive outcomes of one file: their number, results and total time."""

    path: str
    results: Counter[str]
    seconds: float = 0.0

    def attributes(self) -> dict[str, str]:
        return {**_counts(self.results), "time": f"{self.seconds:.3f}"}


def render_junit(outcomes: Iterable[Outcome], summary: Summary, out: TextIO) -> None:
    """Write the report, in two passes; memory grows with the number of files, not of outcomes.

    A failing item is `<error>` for wrong input, else `<failure>` with the verdict as type. A passing item with findings
    is skipped.
    """
    suites = list(_suites(outcomes))
    total: Counter[str] = sum((suite.results for suite in suites), Counter())
    seconds = sum(suite.seconds for suite in suites)
    counts = {key: value for key, value in _counts(total).items() if key != "skipped"}
    out.write('<?xml version="1.0" encoding="UTF-8"?>\n')
    out.write(_tag("testsuites", {"name": "layoutproof", **counts, "time": f"{seconds:.3f}"}, end=not suites))
    remaining = again(outcomes)
    for suite in suites:
        out.write(_tag("testsuite", {"name": suite.path, "file": suite.path, **suite.attributes()}))
        for _ in range(suite.results.total()):
            out.write(_case(next(remaining)))
        out.write("</testsuite>\n")
    if suites:
        out.write("</testsuites>\n")


def _suites(outcomes: Iterable[Outcome]) -> Iterator[_Suite]:
    suite: _Suite | None = None
    for outcome in again(outcomes):
        path = file_of(outcome)
        if suite is None or suite.path != path:
            if suite is not None:
                yield suite
            suite = _Suite(path, Counter())
        suite.results[_result(outcome)] += 1
        suite.seconds += outcome.seconds
    if suite is not None:
        yield suite


def _counts(results: Counter[str]) -> dict[str, str]:
    return {"tests": str(results.total()), **{key: str(results[element]) for key, element in _ELEMENTS.items()}}


def _result(outcome: Outcome) -> str:
    """The element in a case, `passed` for none."""
    findings = findings_of(outcome)
    if not findings:
        return "passed"
    worst = min(findings, key=rank)
    if worst.fate is not Fate.FAILS:
        return "skipped"
    return "error" if worst.status is None else "failure"


def _case(outcome: Outcome) -> str:
    path, result = file_of(outcome), _result(outcome)
    name = outcome.name.removeprefix(f"{path}::")
    classname = path.removesuffix(".py").strip("/").replace("/", ".")
    head = _tag(
        "testcase", {"classname": classname, "name": name, "time": f"{outcome.seconds:.3f}"}, end=not _has_body(outcome)
    )
    if not _has_body(outcome):
        return head
    ordered = sorted(findings_of(outcome), key=rank)
    parts = [head]
    if result != "passed":
        parts.append(_element(result, ordered))
    said = [line for note in outcome.remarks for line in plain_lines(note)]
    if outcome.certificate is not None:
        said.append(f"certificate: {outcome.certificate}")
    if said:
        parts.append(f"<system-out>{_text(said)}</system-out>\n")
    return "".join((*parts, "</testcase>\n"))


def _has_body(outcome: Outcome) -> bool:
    return bool(findings_of(outcome) or outcome.remarks) or outcome.certificate is not None


def _element(name: str, findings: Sequence[Finding]) -> str:
    """The result element: of the worst finding, with the text of all, since readers show only one element."""
    worst = findings[0]
    message = shortened(f"{worst.code}: {headline(worst)}", _MESSAGE)
    more = f" (and {counted(len(findings) - 1, 'more finding', 'more findings')})" if len(findings) > 1 else ""
    kind = status_word(worst) if worst.fate is Fate.FAILS else worst.fate.value
    lines = [line for finding in findings for line in _described(finding)]
    return f"<{name} type={_quoted(kind)} message={_quoted(message + more)}>{_text(lines)}</{name}>\n"


def _described(finding: Finding) -> list[str]:
    place = f"{finding.place}: " if finding.place is not None else ""
    fate = f" ({fate_words(finding)})" if finding.fate is not Fate.FAILS else ""
    first, *rest = finding_lines(finding)
    return [f"{place}{status_word(finding)}[{finding.code}]{fate}: {first}", *(f"  {line}" for line in rest)]


def _tag(name: str, attributes: Mapping[str, str], *, end: bool = False) -> str:
    texts = "".join(f" {key}={_quoted(value)}" for key, value in attributes.items())
    return f"<{name}{texts}{'/' if end else ''}>\n"


def _quoted(text: str) -> str:
    return quoteattr(_legal(text))


def _text(lines: Sequence[str]) -> str:
    return escape(_legal(shortened("\n".join(lines), _TEXT)))


def _legal(text: str) -> str:
    """The text with characters that XML cannot hold escaped as in Python: `\\x1b`, `\\ud800`."""
    return _ILLEGAL.sub(
        lambda found: (
            found[0].encode("ascii", "backslashreplace").decode() if ord(found[0]) > 127 else f"\\x{ord(found[0]):02x}"
        ),
        text,
    )
