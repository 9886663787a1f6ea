"""What a schedule raises if a transform may not be applied: the reason, the verdicts, and what could be done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from layoutproof.ir.codes import TOO_DEEP
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError, error
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.verify.program.questions import Because
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status, Verdict

_WORST_FIRST = (Status.REFUTED, Status.UNKNOWN, Status.VACUOUS, Status.PROVED)


def worst_first(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Verdicts by status, those that are alike in the order that they had."""
    return sorted(verdicts, key=lambda verdict: _WORST_FIRST.index(verdict.status))


@dataclass(frozen=True, slots=True)
class RefusedStep:
    """The step that a schedule refused: the primitive, its arguments as JSON has them, and the unchanged program."""

    primitive: str
    arguments: Mapping[str, Any]
    func: PrimFunc


class IllegalTransform(LayoutproofError):
    """A transform that was refused; the schedule is unchanged.

    `verdicts` are those that are not proved, worst first, each with its diagnostic at the same position; empty if the
    transform does not apply at all (no such buffer, a pad value of the wrong type). The text has the place in the
    program and the counterexample. `step` is what a schedule refused, None outside of a schedule.
    """

    def __init__(self, diagnostics: Diagnostic | Iterable[Diagnostic], verdicts: Iterable[Verdict] = ()) -> None:
        super().__init__(diagnostics)
        self.verdicts: tuple[Verdict, ...] = tuple(worst_first(verdicts))
        self.step: RefusedStep | None = None

    @property
    def verdict(self) -> Verdict | None:
        """The worst verdict; None if nothing was asked."""
        return self.verdicts[0] if self.verdicts else None

    @property
    def status(self) -> Status | None:
        """The worst status; None if nothing was asked."""
        return worst(v.status for v in self.verdicts) if self.verdicts else None


@contextmanager
def limited_stack(func: PrimFunc) -> Iterator[None]:
    """Raise LayoutproofError where a program is nested more deeply than Python's stack lets a walk go."""
    try:
        yield
    except RecursionError as problem:
        message = (
            f"the statements of {func.name} are nested too deeply for this: what follows a let or an allocation stands "
            "in it"
        )
        raise error(TOO_DEEP, message, func.span) from problem


@contextmanager
def refusing() -> Iterator[None]:
    """Input errors inside become refusals."""
    try:
        yield
    except IllegalTransform:
        raise
    except LayoutproofError as problem:
        raise IllegalTransform(problem.diagnostics) from problem


def hint_of(verdict: Verdict) -> str | None:
    """A remedy for a verdict, if its status and its reason suggest one."""
    if verdict.status is Status.VACUOUS and Because.NOTHING_SEEN in verdict.because:
        return "store what is computed to a parameter, where callers see it"
    if verdict.status is Status.VACUOUS and Because.CONTRADICTION in verdict.because:
        return "take out or mend the assumptions that contradict each other"
    if verdict.status is Status.VACUOUS:
        return "mend the fault that every run meets"
    if verdict.status is Status.UNKNOWN and Because.OVERLAP in verdict.because:
        return 'state that parameters do not overlap: T.func_attr({"tirx.noalias": True})'
    if verdict.status is Status.UNKNOWN and Because.BUDGET in verdict.because:
        return "bounds on sizes, stated by the program, or a larger --budget may decide it"
    if verdict.status is Status.UNKNOWN and Because.DATA in verdict.because:
        return "clamp the index in the program, as in T.max(0, T.min(I[i], extent - 1))"
    return None
