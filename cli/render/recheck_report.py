"""The result of `recheck`, as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from layoutproof.cli.output import escaped, styled
from layoutproof.cli.render.kernel_report import counted, share, share_to_dict, step_lines, step_to_dict
from layoutproof.verify.certificate.reading import Kind
from layoutproof.verify.certificate.recheck import EngineReport, FileReport, Report
from layoutproof.verify.verdict.verdict import Status

_SHOWN = 10
_SHOWN_OF_A_REASON = 3


def recheck_to_dict(report: Report) -> dict[str, Any]:
    """The report as JSON has it."""
    return {
        "verdict": report.status.value,
        "disagreements": list(report.disagreements),
        "files": [_file_to_dict(file) for file in report.files],
        "engines": [_engine_to_dict(engine) for engine in report.engines],
        "trust": share_to_dict([step for file in report.files for step in file.steps]),
    }


def _file_to_dict(file: FileReport) -> dict[str, Any]:
    return {
        "path": file.path,
        "kind": file.kind.value,
        "verdict": None if file.is_broken else file.status.value,
        "claims": file.claims,
        "questions": file.questions,
        "confirmed": file.confirmed,
        "problems": list(file.problems),
        "exceptions": list(file.exceptions),
        "steps": [step_to_dict(step) for step in file.steps],
    }


def _engine_to_dict(engine: EngineReport) -> dict[str, Any]:
    return {
        "engine": engine.name,
        "version": engine.version,
        "asked": engine.asked,
        "confirmed": engine.confirmed,
        "unknown": engine.unknown,
        "contradicted": engine.contradicted,
    }


def render_recheck(report: Report, markup: bool = False) -> str:
    """Disagreements first, then files with their problems and steps, what rests on one engine, the engines as a table,
    and what the steps rest on.
    """
    steps = [step for file in report.files for step in file.steps]
    lines = [*_alarm(report, markup), *_files(report, markup), *_exceptions(report, markup), *_engines(report)]
    return "\n".join([*lines, *([share(steps)] if steps else [])]) + "\n"


def _alarm(report: Report, markup: bool) -> Iterator[str]:
    if report.disagreements:
        line = (
            f"SOLVERS CONTRADICT EACH OTHER on {len(report.disagreements)} questions: one of them, or this "
            "tool, is wrong"
        )
        yield styled(line, Status.REFUTED, markup)
        yield from (f"  {escaped(text, markup)}" for text in report.disagreements)


def _files(report: Report, markup: bool) -> Iterator[str]:
    for file in report.files:
        word, status = ("refused", Status.REFUTED) if file.is_broken else (_word(file), file.status)
        shown = styled(f"{word:<8}", status, markup)
        yield f"{shown} {escaped(file.path, markup)}" + (
            "" if file.is_broken else f": {file.kind.value}{_counts(file)}"
        )
        yield from _listed(file.problems, "  ", markup)
        yield from step_lines(file.steps, markup)


def _word(file: FileReport) -> str:
    """A confirmed rewrite is `expected`: its expected verdict may be refuted."""
    return "expected" if file.kind is Kind.REWRITE and file.status is Status.PROVED else file.status.value


def _counts(file: FileReport) -> str:
    if file.kind is Kind.REWRITE:
        return "" if file.problems else ", the checker says what its header says"
    return (
        f", {counted(file.claims, 'claim')}, {file.confirmed} of {counted(file.questions, 'question')} "
        "confirmed by two solvers"
    )


def _exceptions(report: Report, markup: bool) -> Iterator[str]:
    every = [f"{file.path}: {text}" for file in report.files for text in file.exceptions]
    reasons: dict[str, list[str]] = {}
    for text in every:
        claim, _, reason = text.rpartition(": ")
        reasons.setdefault(reason, []).append(claim)
    if every:
        yield f"resting on one engine ({len(every)}; all are named in JSON):"
    for reason, claims in reasons.items():
        yield f"  {counted(len(claims), 'claim')}: {escaped(reason, markup)}"
        yield from _listed(claims, "    ", markup, _SHOWN_OF_A_REASON)


def _listed(texts: Sequence[str], indent: str, markup: bool, shown: int = _SHOWN) -> Iterator[str]:
    for text in texts[:shown]:
        yield from (f"{indent}{escaped(line, markup)}" for line in text.splitlines())
    if len(texts) > shown:
        yield f"{indent}and {len(texts) - shown} more"


def _engines(report: Report) -> Iterator[str]:
    if all(file.is_broken for file in report.files):
        return
    yield f"{'solver':<12}{'version':<12}{'asked':>8}{'confirmed':>12}{'unknown':>10}{'contradicted':>14}"
    for e in report.engines:
        yield f"{e.name:<12}{e.version:<12}{e.asked:>8}{e.confirmed:>12}{e.unknown:>10}{e.contradicted:>14}"
