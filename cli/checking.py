"""What `check` does with one schedule, with each of many, and with a rewrite that somebody wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from layoutproof.cli import codes
from layoutproof.cli.report import Refusal
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError, error
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite_text import AFTER, BEFORE, parse_litmus
from layoutproof.ir.script.reader import load_module, read_text
from layoutproof.lowering.illegal import IllegalTransform
from layoutproof.lowering.schedule import Schedule
from layoutproof.lowering.step import Step
from layoutproof.lowering.trace import Trace, passes_of
from layoutproof.verify.certificate.certificate import StepRecord, certify
from layoutproof.verify.certificate.expected import allowed_by
from layoutproof.verify.checker import check_rewrite
from layoutproof.verify.values.licences import Licences
from layoutproof.verify.verdict import Status, Verdict, worst

Advance = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The program's name, the steps that were kept, the one that was refused, and where the certificate was written."""

    program: str
    steps: tuple[Step, ...]
    refused: Refusal | None = None
    certificate: str | None = None
    line: int | None = None

    @property
    def status(self) -> Status:
        """The worst verdict; a schedule without a step proves nothing and is vacuous."""
        if not self.steps and self.refused is None:
            return Status.VACUOUS
        refused = self.refused.verdicts if self.refused is not None else ()
        return worst(v.status for v in (*refused, *(v for step in self.steps for v in step.verdicts)))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Why a step was refused, with its places in the program."""
        return self.refused.diagnostics if self.refused is not None else ()


@dataclass(frozen=True, slots=True)
class RewriteReport:
    """The rewrite's file, every obligation with its verdict, and where the certificate was written."""

    program: str
    verdicts: tuple[Verdict, ...]
    certificate: str | None = None

    @property
    def status(self) -> Status:
        """The worst verdict."""
        return worst(verdict.status for verdict in self.verdicts)


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line of a file of schedules that is none, or whose steps do not apply: the line's number from 1, and what is wrong."""

    program: str
    line: int
    message: str

    @staticmethod
    def or_report(func: PrimFunc, name: str, line: tuple[int, str], allowed: Licences) -> CheckReport | BadLine:
        """What becomes of a line."""
        number, text = line
        try:
            trace = json.loads(text, parse_constant=_no_constant)
        except (ValueError, RecursionError) as problem:
            return BadLine(name, number, f"not JSON: {problem}")
        try:
            passes_of(trace)
            return replace(check_trace(func, name, trace, allowed), line=number)
        except LayoutproofError as problem:
            return BadLine(name, number, "; ".join(diagnostic.message for diagnostic in problem.diagnostics))


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def check_trace(
    func: PrimFunc,
    name: str,
    trace: Trace | Any,
    allowed: Licences,
    certificate: Path | None = None,
    advance: Advance = lambda stage: None,
) -> CheckReport:
    """Apply a schedule, stopping at the first step that is not proved; write its certificate where all are.

    Raises LayoutproofError, naming the step, for one that does not apply at all.
    """
    schedule = Schedule(func, allowed=allowed)
    passes = passes_of(trace)
    for number, transform in enumerate(passes, start=1):
        advance(f"step {number} of {len(passes)}")
        try:
            schedule.apply(transform)
        except IllegalTransform as problem:
            if not problem.verdicts:
                raise LayoutproofError(_at_step(problem.diagnostics, number)) from problem
            return CheckReport(name, schedule.steps, Refusal(transform.primitive, transform.arguments(), problem))
    if certificate is not None:
        advance("writing the certificate")
        schedule.certificate.save(certificate)
    return CheckReport(name, schedule.steps, certificate=str(certificate) if certificate is not None else None)


def is_rewrite(path: Path) -> bool:
    """Whether a file holds two programs under the names that those of a rewrite have. Raises LayoutproofError for one that holds none."""
    return {function.name for function in load_module(path).functions} == {BEFORE, AFTER}


def check_given_rewrite(path: Path, allowed: Licences, certificate: Path | None = None) -> RewriteReport:
    """Check a rewrite (see `ir/rewrite_text.py`) under licences that both the caller and its header allow; write the certificate of one
    that is proved. What it expects of itself is for `recheck`. Raises LayoutproofError for a text that is none.
    """
    litmus = parse_litmus(read_text(path), str(path))
    rewrite, where, licences = litmus.rewrite, litmus.header.where, allowed & allowed_by(litmus.header.strictness)
    report = RewriteReport(str(path), check_rewrite(rewrite, where, allowed=licences))
    if certificate is None or report.status is not Status.PROVED:
        return report
    certify([StepRecord("rewrite", {}, rewrite, where, licences)], rewrite.old.name).save(certificate)
    return replace(report, certificate=str(certificate))


def _at_step(diagnostics: Sequence[Diagnostic], number: int) -> list[Diagnostic]:
    first, *rest = diagnostics
    return [replace(first, message=f"step {number}: {first.message}"), *rest]


def read_lines(path: Path) -> list[tuple[int, str]]:
    """The lines of a file that are not blank, with their numbers. Raises LayoutproofError for a file without one."""
    lines = [(number, line) for number, line in enumerate(read_text(path).split("\n"), start=1) if line.strip()]
    if not lines:
        raise error(codes.NOTHING_TO_CHECK, f"{path} has no line with a schedule")
    return lines
