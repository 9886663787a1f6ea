"""The result of `recheck`, as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from layoutproof.cli.output import escaped, is_verbose, styled
from layoutproof.verify.certificate.kernel_reading import KernelReport, StepReport, Trust
from layoutproof.verify.certificate.reading import Kind
from layoutproof.verify.certificate.recheck import EngineReport, FileReport, Report
from layoutproof.verify.kernel.judge import Judged
from layoutproof.verify.verdict.verdict import Status

_STYLES = {Trust.KERNEL: "proved", Trust.SOLVERS: "proved", Trust.ENGINE: "proved", Trust.NONE: "refuted"}


def share_to_dict(steps: Sequence[StepReport]) -> dict[str, Any]:
    """How many steps rest on what, and how many claims the kernel accepts of those that it judged."""
    judged = [claim for step in steps for claim in step.judged]
    return {
        "steps": {trust.value: sum(step.trust is trust for step in steps) for trust in Trust},
        "accepted": sum(claim.is_accepted for claim in judged),
        "judged": len(judged),
    }


def step_to_dict(step: StepReport) -> dict[str, Any]:
    """A step, with the claims that the kernel rejects."""
    return {
        "step": step.name,
        "trust": step.trust.value,
        "assumptions": list(step.assumptions),
        "accepted": sum(claim.is_accepted for claim in step.judged),
        "judged": len(step.judged),
        "rejected": [
            {"kind": claim.kind, "line": claim.line, "claim": claim.text, "reason": claim.reason}
            for claim in step.judged
            if not claim.is_accepted
        ],
    }


def share(steps: Sequence[StepReport]) -> str:
    """`4 steps: 3 kernel, 1 two solvers; 120 of 131 claims accepted by the kernel`."""
    if not steps:
        return "no steps"
    counts = share_to_dict(steps)
    words = [f"{number} {trust}" for trust, number in counts["steps"].items() if number]
    claims = f"{counts['accepted']} of {counts['judged']} claims accepted by the kernel"
    return f"{_counted(len(steps), 'step')}: {', '.join(words)}; {claims}"


def step_lines(steps: Sequence[StepReport], markup: bool) -> Iterator[str]:
    """A line for each step; with --verbose the rejected claims below it."""
    for step in steps:
        rejected = [claim for claim in step.judged if not claim.is_accepted]
        claims = _counted(len(step.judged), "claim") if step.judged else "no evidence for the kernel"
        words = f"{claims}, {len(rejected)} rejected by the kernel" if rejected else claims
        words += f", under {' '.join(step.assumptions)}" if step.assumptions else ""
        shown = styled(step.trust.value, _STYLES[step.trust], markup)
        yield f"  {escaped(step.name, markup)}: {shown} ({words})"
        if is_verbose():
            yield from (f"    {escaped(_line(claim), markup)}" for claim in rejected)


def _line(claim: Judged) -> str:
    place = f", line {claim.line}" if claim.line else ""
    return f"{claim.kind}{place}: {claim.text}: {claim.reason}"


def kernel_to_dict(reports: Sequence[KernelReport]) -> dict[str, Any]:
    """The files as JSON has them."""
    steps = [step for report in reports for step in report.steps]
    return {
        "accepted": is_accepted(reports),
        "trust": share_to_dict(steps),
        "files": [
            {
                "path": report.path,
                "problem": report.problem,
                "programs": list(report.programs),
                "steps": [step_to_dict(step) for step in report.steps],
            }
            for report in reports
        ],
    }


def is_accepted(reports: Sequence[KernelReport]) -> bool:
    """Whether the kernel accepts every step of every file."""
    return all(
        report.problem is None and report.steps and all(step.trust is Trust.KERNEL for step in report.steps)
        for report in reports
    )


def render_kernel(reports: Sequence[KernelReport], markup: bool = False) -> str:
    """Each file with its steps, with --verbose also its first and its last program, and what is accepted of all."""
    lines: list[str] = []
    for report in reports:
        word, style = ("accepted", "proved") if is_accepted([report]) else ("rejected", "refuted")
        word = word if report.problem is None else "refused"
        lines.append(f"{styled(word, style, markup)} {escaped(report.path, markup)}")
        lines += [f"  {escaped(line, markup)}" for line in (report.problem or "").splitlines()]
        lines += step_lines(report.steps, markup)
        if is_verbose():
            for when, text in zip(("before", "after"), report.programs, strict=False):
                lines += [f"  the program {when}:", *(f"    {escaped(line, markup)}" for line in text.splitlines())]
    every = [step for report in reports for step in report.steps]
    return "\n".join([*lines, share(every)]) + "\n"


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
        f", {_counted(file.claims, 'claim')}, {file.confirmed} of {_counted(file.questions, 'question')} "
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
        yield f"  {_counted(len(claims), 'claim')}: {escaped(reason, markup)}"
        yield from _listed(claims, "    ", markup, _SHOWN_OF_A_REASON)


def _listed(texts: Sequence[str], indent: str, markup: bool, shown: int = _SHOWN) -> Iterator[str]:
    for text in texts[:shown]:
        yield from (f"{indent}{escaped(line, markup)}" for line in text.splitlines())
    if len(texts) > shown:
        yield f"{indent}and {len(texts) - shown} more"


def _engines(report: Report) -> Iterator[str]:
    yield f"{'solver':<12}{'version':<12}{'asked':>8}{'confirmed':>12}{'unknown':>10}{'contradicted':>14}"
    for e in report.engines:
        yield f"{e.name:<12}{e.version:<12}{e.asked:>8}{e.confirmed:>12}{e.unknown:>10}{e.contradicted:>14}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
