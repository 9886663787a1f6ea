"""What a schedule raises when a transform may not be applied: the reason, and the verdicts that say so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError
from layoutproof.verify.verdict import Status, Verdict, worst


class IllegalTransform(LayoutproofError):
    """A transform that was refused; the schedule is as it was before.

    `verdicts` are those that are not proved, worst first; empty where the transform does not apply at all (no such buffer, a pad
    value of the wrong type). The text has the place in the program and the counterexample.
    """

    def __init__(self, diagnostics: Diagnostic | Iterable[Diagnostic], verdicts: Iterable[Verdict] = ()) -> None:
        super().__init__(diagnostics)
        order = (Status.REFUTED, Status.UNKNOWN, Status.VACUOUS, Status.PROVED)
        self.verdicts: tuple[Verdict, ...] = tuple(sorted(verdicts, key=lambda v: order.index(v.status)))

    @property
    def verdict(self) -> Verdict | None:
        """The worst verdict; None where nothing was asked."""
        return self.verdicts[0] if self.verdicts else None

    @property
    def status(self) -> Status | None:
        """The worst status; None where nothing was asked."""
        return worst(v.status for v in self.verdicts) if self.verdicts else None


def counterexample_text(verdict: Verdict) -> str | None:
    """Why a verdict is not `proved`, in one line: its reason, else its counterexample; None where it has neither."""
    found = verdict.counterexample
    if verdict.reason is not None or found is None:
        return verdict.reason
    if set(found) == {"first", "second", "image"}:
        return f"{found['first']} and {found['second']} both go to {found['image']}"
    return ", ".join(f"{name}: {value}" for name, value in found.items())


@contextmanager
def refusing() -> Iterator[None]:
    """Input errors inside become refusals."""
    try:
        yield
    except IllegalTransform:
        raise
    except LayoutproofError as problem:
        raise IllegalTransform(problem.diagnostics) from problem
