"""SARIF 2.1.0 for code scanning services and editors: a result for each finding, a rule for each code that occurs.

What the standard leaves open follows GitHub: paths are relative to the folder of the run, each result has a location,
and there are at most as many results as an upload may have, worst first.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from typing import Any, TextIO
from urllib.parse import quote

from layoutproof.cli.catalogue import meaning_of
from layoutproof.cli.gate.outcomes import Fate, Finding, Kind, Outcome, Place, Summary, is_below, steady_path
from layoutproof.cli.render.gate.finding_texts import (
    again,
    fate_words,
    finding_lines,
    findings_of,
    printable,
    rank,
    shortened,
    status_word,
    summary_line,
    worst_first,
)

# What GitHub takes of one run, and how many of those it shows: docs.github.com, "SARIF results exceed limits".
MOST_RESULTS = 25_000
SHOWN_RESULTS = 5_000
_MOST_RELATED = 99
_MESSAGE = 8_000
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "%SRCROOT%"
_LEVELS = {Fate.ALLOWED: "warning", Fate.KNOWN: "note", Fate.IGNORED: "note"}


def render_sarif(outcomes: Iterable[Outcome], summary: Summary, out: TextIO, most: int = MOST_RESULTS) -> None:
    """Write the report, at most `most` results, and a notification of the number left out, in constant memory."""
    ranks: Counter[int] = Counter()
    found: set[str] = set()
    for outcome in again(outcomes):
        findings = findings_of(outcome)
        ranks.update(map(rank, findings))
        found.update(finding.code for finding in findings)
    codes = {code: index for index, code in enumerate(sorted(found))}
    run = {
        "tool": {"driver": _driver(codes)},
        "invocations": [_invocation(summary, ranks.total(), most)],
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The folder that layoutproof ran in."}}},
        "columnKind": "utf16CodeUnits",
    }
    # Results go out one by one, so what stands around them is written by hand where they begin and end.
    head = json.dumps(run, indent=1).removesuffix("\n}")
    out.write(f'{{"$schema": {json.dumps(_SCHEMA)}, "version": "2.1.0", "runs": [{head},\n "results": [')
    separator = "\n"
    for outcome, finding in islice(worst_first(outcomes, ranks), most):
        out.write(separator + json.dumps(_result(outcome, finding, codes[finding.code])))
        separator = ",\n"
    out.write("\n]}]}\n")


def _driver(codes: Iterable[str]) -> dict[str, Any]:
    from layoutproof import __version__

    return {
        "name": "layoutproof",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(code) for code in codes],
    }


def _rule(code: str) -> dict[str, Any]:
    meaning = meaning_of(code)
    text = [part for part in (meaning.what, meaning.why) if part]
    page = [
        f"## {title}\n\n{part}"
        for title, part in (("Example", meaning.example), ("What to do", meaning.remedy))
        if part
    ]
    return {
        "id": code,
        "shortDescription": {"text": f"{meaning.what.split('. ')[0].removesuffix('.')}."},
        "fullDescription": {"text": meaning.what},
        "help": {"text": _without_links("\n\n".join(text)), "markdown": "\n\n".join((*text, *page))},
        "defaultConfiguration": {"level": "error"},
    }


def _invocation(summary: Summary, results: int, most: int) -> dict[str, Any]:
    notes = []
    if results > most:
        notes.append(
            f"{results - most} of {results} results were left out, those that matter least: an upload may have {most}."
        )
    if min(results, most) > SHOWN_RESULTS:
        notes.append(f"Code scanning shows {SHOWN_RESULTS} results of a run; the worst stand first.")
    return {
        "executionSuccessful": True,
        "exitCode": summary.exit_code,
        "exitCodeDescription": summary_line(summary),
        "toolExecutionNotifications": [{"level": "warning", "message": {"text": note}} for note in notes],
    }


def _result(outcome: Outcome, finding: Finding, index: int) -> dict[str, Any]:
    place = finding.place if finding.place is not None else outcome.place
    item = {
        "fullyQualifiedName": printable(outcome.name),
        **({"kind": "function"} if outcome.kind is Kind.GATE else {}),
    }
    location = {**_location(place if place is not None else Place(outcome.program, 0)), "logicalLocations": [item]}
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": _LEVELS.get(finding.fate, finding.severity),
        "message": {"text": _message(finding)},
        "locations": [location],
        "properties": {"status": status_word(finding), "fate": finding.fate.value},
    }
    if finding.related:
        related = finding.related[:_MOST_RELATED]
        result["relatedLocations"] = [
            {"id": number, **_location(place), "message": {"text": _plain(word)}}
            for number, (place, word) in enumerate(related)
        ]
    if finding.obligation is not None:
        result["partialFingerprints"] = {"obligation/v1": finding.obligation}
    if finding.fate in (Fate.KNOWN, Fate.IGNORED):
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": fate_words(finding)}]
    return result


def _message(finding: Finding) -> str:
    # Other places have locations of their own.
    lines = finding_lines(replace(finding, related=()))
    return _plain(shortened("\n".join(lines), _MESSAGE))


def _plain(text: str) -> str:
    """The text without lone surrogates, control characters and links."""
    return _without_links(printable(text))


def _without_links(text: str) -> str:
    """The text with links escaped: the standard reads `A[i](3)` as a link to the location 3."""
    return text.replace("](", "] (")


def _location(place: Place) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": _artifact(place.path)}
    if place.line > 0:
        physical["region"] = _region(place)
    return {"physicalLocation": physical}


def _artifact(path: str) -> dict[str, str]:
    steady = steady_path(path)
    if is_below(steady):
        # A colon in the first part would make it a scheme, so colons are encoded too.
        return {"uri": quote(steady, safe="/", errors="surrogateescape"), "uriBaseId": _ROOT}
    return {"uri": f"file://{quote(steady, safe='/', errors='surrogateescape')}"}


def _region(place: Place) -> dict[str, Any]:
    """Lines and columns from 1, columns in UTF-16 code units. The end column on a later line is omitted, since that
    line's text, needed for the units, is not known.
    """
    region: dict[str, Any] = {"startLine": place.line, "startColumn": _column(place.text, place.column)}
    if place.end_line == place.line and place.end_column >= place.column:
        region["endLine"] = place.line
        region["endColumn"] = _column(place.text, place.end_column)
    elif place.end_line > place.line:
        region["endLine"] = place.end_line
    return region


def _column(text: str, column: int) -> int:
    """A column in characters as UTF-16 code units: a character past U+FFFF counts twice."""
    return column + sum(ord(character) > 0xFFFF for character in text[: column - 1])
