"""Outcomes as text and as JSON (`docs/schemas`), printed while they come in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO

from layoutproof.cli.gate.outcomes import Fate, Finding, Kind, Outcome, Place, Summary
from layoutproof.cli.output import STYLES, on_one_line, readable
from layoutproof.cli.render.gate.finding_texts import plural
from layoutproof.ir.diagnostic import counted
from layoutproof.verify.verdict.report import of_entry

_FATES = {Fate.ALLOWED: "allowed", Fate.IGNORED: "ignored", Fate.KNOWN: "in the baseline"}
_SHOWN = 160  # columns of a source line
_QUESTIONS = ("check_map", "compare", "verdict")  # that gates ask; all else are steps, which are applied or not

Styled = Callable[[str, str], str]
"""A text in a style; it leaves the text alone where there are no colours."""


def plain(text: str, style: str) -> str:
    """The text, without a style."""
    return text


def render_text(outcomes: Iterator[Outcome], summary: Summary, out: TextIO) -> None:
    """A run as text: see `render_outcome` and `render_summary`."""
    alone = summary.items == 1
    for outcome in outcomes:
        out.write(render_outcome(outcome, alone=alone))
    if not alone:
        out.write(render_summary(summary))


def render_outcome(outcome: Outcome, *, alone: bool, styled: Styled = plain) -> str:
    """One outcome: in full if it is `alone` or has findings; else a line."""
    if not alone and not outcome.findings and outcome.verdict is not None:
        return f"{_word(outcome.verdict, styled):<8} {_name(outcome.name)}\n"
    return "\n".join(_lines(outcome, alone, styled)) + "\n"


def render_summary(summary: Summary, styled: Styled = plain) -> str:
    """The count of a run in a line or two."""
    counts = ((kind, style, summary.verdicts[kind]) for kind, style in STYLES.items())
    words = [f"{n:,} {styled(plural(kind, n), style)}" for kind, style, n in counts if n]
    spared = [f"{summary.fates[fate.value]:,} {word}" for fate, word in _FATES.items() if summary.fates[fate.value]]
    lines = [
        counted(summary.items, "item", "items") + (f": {', '.join(words)}" if words else ", none of them in this part")
    ]
    if spared:
        lines[0] += f" (findings: {', '.join(spared)})"
    if summary.cached:
        lines[0] += f"; {summary.cached:,} from the cache"
    if summary.failing:
        codes = ", ".join(f"{code} {count:,}" for code, count in sorted(summary.codes.items()))
        fail = "fails" if summary.failing == 1 else "fail"
        lines.append(f"{summary.failing:,} {fail} the run; findings by code: {codes} (`layoutproof explain CODE`)")
    return "\n".join(lines) + "\n"


def _word(status: str | None, styled: Styled) -> str:
    word = "error" if status is None else status
    return styled(f"{word:<8}", STYLES[word])


def _lines(outcome: Outcome, alone: bool, styled: Styled) -> Iterator[str]:
    title = outcome.program if alone and outcome.kind is Kind.TRACE else outcome.name
    yield f"{_name(title)}: {styled(outcome.word, STYLES[outcome.word])}"
    if outcome.kind is Kind.COMPARISON:
        yield from (f"  {readable(note)}" for note in outcome.notes)
    elif outcome.kind is Kind.REWRITE and outcome.steps:
        yield from _claims(outcome.steps[0]["obligations"])
    else:
        for step in outcome.steps:
            yield from _step(step, styled)
    for finding in outcome.findings:
        yield from (f"  {line}" if line else "" for line in finding_lines(finding, styled))
    if outcome.verdict == "proved":
        yield from _proved(outcome)
    if outcome.certificate is not None:
        yield f"  certificate: {_name(outcome.certificate)}"
    if outcome.compared is not None and outcome.compared["witness"] is not None:
        yield f"  witness: {_name(outcome.compared['witness'])}"


def _proved(outcome: Outcome) -> Iterator[str]:
    """The last lines of a proved outcome."""
    if outcome.kind is Kind.COMPARISON and outcome.steps:
        # The first says what was asked, which stands above.
        _, *obligations = outcome.steps[0]["obligations"]
        yield f"  {counted(len(obligations), 'obligation', 'obligations')}, all proved:"
        yield from _claims(obligations)
    elif outcome.kind is not Kind.COMPARISON:
        for note in outcome.remarks:
            yield f"  {readable(note)}"


def _name(text: str) -> str:
    return on_one_line(text)


def _step(step: Mapping[str, Any], styled: Styled) -> Iterator[str]:
    obligations: Sequence[Mapping[str, Any]] = step["obligations"]
    order = ("refuted", "unknown", "vacuous", "proved")
    status = next((s for s in order if any(o["status"] == s for o in obligations)), "proved")
    given = step["arguments"]
    if step["primitive"] == "compare":
        given = {layout["buffer"]: layout["index_map"] for layout in given["layouts"]}
    arguments = ", ".join(f"{name}={value!r}" for name, value in given.items())
    kept = status in ("proved", "vacuous") or step["primitive"] in _QUESTIONS
    what = counted(len(obligations), "obligation", "obligations") if kept else "not applied"
    yield f"  {_word(status, styled)} {step['primitive']}({readable(arguments)}): {what}"
    yield from remarks(obligations)


def _claims(obligations: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The claims of a rewrite, grouped by kind; those not proved are among the findings."""
    from layoutproof.cli.render.run_report import summary_lines

    yield from summary_lines([of_entry(entry) for entry in obligations if entry["status"] == "proved"], False)
    yield from remarks(obligations)


def remarks(obligations: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Assumptions of proved claims: fast-math ones, with what breaks the claim without them, and invariants."""
    for entry in obligations:
        if entry["status"] == "proved" and (entry["strictness"] or "invariant" in entry["because"]):
            fast_math = f"holds with {' '.join(entry['strictness'])}" if entry["strictness"] else None
            yield f"      {entry['claim']}: {'; '.join(part for part in (fast_math, entry['reason']) if part)}"


def finding_lines(finding: Finding, styled: Styled = plain) -> Iterator[str]:
    """A finding: place, code and message, the source line with a mark, the counterexample, related places, help."""
    first, *rest = readable(finding.message).split("\n")
    place = f"{_name(str(finding.place))}: " if finding.place is not None else ""
    style = STYLES["error" if finding.status is None else finding.status]
    spared = f" [{_FATES[finding.fate]}]" if finding.fate in _FATES else ""
    yield f"{place}{styled(f'{finding.severity}[{finding.code}]', style)}{spared}: {first}"
    if finding.place is not None:
        yield from excerpt(finding.place)
    if finding.drawing:
        yield from (f"    {readable(line)}" for line in finding.drawing)
        # The drawing has the stores that differ, which come first; what is left are the inputs.
        example = finding.counterexample if finding.counterexample is not None else {}
        rest = rest[sum(key in example for key in ("before_store", "after_store")) :]
    yield from (f"  {line}" for line in rest)
    for where, word in finding.related:
        yield f"{_name(str(where))}: note: {readable(word)}"
        yield from excerpt(where)
    if finding.help is not None:
        yield f"  = help: {readable(finding.help)}"


def excerpt(place: Place) -> Iterator[str]:
    """The source line of a place with carets; nothing if the line is not known."""
    text = "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in place.text)
    if not text.strip():
        return
    column = place.column - 1
    start = max(0, column - _SHOWN // 2) if len(text) > _SHOWN else 0
    shown = text[start : start + _SHOWN]
    end = place.end_column - 1 if place.end_line == place.line else len(text)
    blank = "".join("\t" if c == "\t" else " " for c in shown[: column - start])
    yield f"  {place.line} | {shown}"
    yield f"  {' ' * len(str(place.line))} | {blank}{'^' * max(1, min(end, start + _SHOWN) - column)}"


def render_json(outcomes: Iterable[Outcome], summary: Summary, out: TextIO) -> None:
    """Each outcome as an object on its own line."""
    for outcome in outcomes:
        # Not `json.dump`, which is several times slower.
        out.write(json.dumps(outcome.to_report()) + "\n")
