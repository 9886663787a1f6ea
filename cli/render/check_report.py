"""What `check` found, as text and as plain data for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.markup import escape

from layoutproof.cli.checking import BadLine, CheckReport, RewriteReport
from layoutproof.cli.output import STYLES
from layoutproof.cli.render.run_report import refusal_lines, step_lines, summary_lines
from layoutproof.verify.fits import CLAIM as FITS
from layoutproof.verify.values.licences import Licence, names_of
from layoutproof.verify.verdict import Status, Verdict


def check_to_dict(report: CheckReport | RewriteReport | BadLine) -> dict[str, Any]:
    """One schedule as JSON has it: a refused step stands last, with the obligations that were not proved.

    A line that is no schedule has no verdict, and says so under `error`, with its number under `line`. A rewrite that somebody wrote is
    one step without arguments.
    """
    if isinstance(report, BadLine):
        blank: dict[str, Any] = {"program": report.program, "verdict": None, "steps": [], "certificate": None}
        return {**blank, "line": report.line, "error": report.message}
    if isinstance(report, RewriteReport):
        steps = [{"primitive": "rewrite", "arguments": {}, "obligations": [verdict.to_dict() for verdict in report.verdicts]}]
        return {"program": report.program, "verdict": report.status.value, "steps": steps, "certificate": report.certificate}
    steps = [step.to_dict() for step in report.steps]
    if report.refused is not None:
        steps.append(report.refused.to_dict())
    return {"program": report.program, "verdict": report.status.value, "steps": steps, "certificate": report.certificate}


def render_check(report: CheckReport | RewriteReport | BadLine, markup: bool = False) -> str:
    """One schedule as people read it: each step with its verdict, what it needs and why, and the counterexample of what failed."""
    return "\n".join(_lines(report, markup)) + "\n"


def _lines(report: CheckReport | RewriteReport | BadLine, markup: bool) -> Iterator[str]:
    at = f", line {report.line}" if not isinstance(report, RewriteReport) and report.line is not None else ""
    title = f"{report.program}{at}"
    if isinstance(report, BadLine):
        word = f"[{STYLES[Status.REFUTED]}]error[/]" if markup else "error"
        yield f"{_plain(title, markup)}: {word}: {_plain(report.message, markup)}"
        return
    status = report.status.value
    yield f"{_plain(title, markup)}: " + (f"[{STYLES[report.status]}]{status}[/]" if markup else status)
    yield from _rewrite_lines(report, markup) if isinstance(report, RewriteReport) else _schedule_lines(report, markup)
    if report.certificate is not None:
        yield f"  certificate: {_plain(report.certificate, markup)}"


def _schedule_lines(report: CheckReport, markup: bool) -> Iterator[str]:
    for step in report.steps:
        yield from step_lines(step, markup)
        yield from _remarks(step.verdicts, markup)
    if report.refused is not None:
        yield from refusal_lines(report.refused, markup)
    elif report.steps:
        verdicts = [verdict for step in report.steps for verdict in step.verdicts]
        yield f"  all steps hold {_needed(verdicts)}"
        yield from _asked_of_callers(verdicts, markup)
    else:
        yield "  there is no step, so nothing was proved"


def _rewrite_lines(report: RewriteReport, markup: bool) -> Iterator[str]:
    yield from summary_lines(report.verdicts, markup)
    yield from _remarks(report.verdicts, markup)
    if report.status is Status.PROVED:
        yield f"  the two programs do the same {_needed(report.verdicts)}"
        yield from _asked_of_callers(report.verdicts, markup)


def _remarks(verdicts: Sequence[Verdict], markup: bool) -> Iterator[str]:
    """What proved claims rest on: licences, with what breaks the claim without them, and invariants."""
    for verdict in verdicts:
        reason = verdict.reason if verdict.reason is not None else ""
        if verdict.status is Status.PROVED and (verdict.strictness or reason.startswith("invariant: ")):
            licences = f"holds with {' '.join(verdict.strictness)}" if verdict.strictness else ""
            text = reason if licences in reason else "; ".join(part for part in (licences, reason) if part)
            yield f"      {_plain(f'{verdict.claim}: {text}', markup)}"


def _asked_of_callers(verdicts: Iterable[Verdict], markup: bool) -> Iterator[str]:
    """What is not proved but checked whenever a kernel is called, once each."""
    reasons = (verdict.reason for verdict in verdicts if verdict.claim == FITS and verdict.status is Status.PROVED)
    yield from dict.fromkeys(f"  {_plain(reason, markup)}" for reason in reasons if reason is not None)


def _needed(verdicts: Iterable[Verdict]) -> str:
    found = frozenset(Licence(word) for verdict in verdicts for word in verdict.strictness)
    return f"with {' '.join(names_of(found))}" if found else "bit for bit"


def _plain(text: str, markup: bool) -> str:
    return escape(text) if markup else text
