"""Comparisons of functions with thread axes: as functions with parallel loops, which is what they mean."""

from __future__ import annotations

from dataclasses import dataclass, replace

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.threads.sequential import NoSequence, Sequential
from layoutproof.lowering.compare.answers import ENGINE
from layoutproof.lowering.compare.comparison import Comparison
from layoutproof.lowering.compare.split_loops import with_split_loops
from layoutproof.lowering.passes.as_loops import check_part, forms_of, licences_needed
from layoutproof.verify.lockstep.memories import ASKED
from layoutproof.verify.verdict.verdict import Status, Verdict, counterexample_text

_BARRIERS = "barriers are taken to stand where threads meet in shared memory, as TVM puts them"


@dataclass(frozen=True, slots=True)
class Question:
    """Two functions, thread axes written as parallel loops, and what was asked about."""

    before: PrimFunc
    after: PrimFunc
    asked: tuple[PrimFunc, PrimFunc]
    forms: tuple[Sequential, ...]
    obstacle: NoSequence | None = None

    @staticmethod
    def of(before: PrimFunc, after: PrimFunc) -> Question:
        """The question as parallel loops, as far as it can be written so. Anything but functions is left as it is."""
        asked = (before, after)
        if not all(isinstance(func, PrimFunc) for func in asked):
            return Question(before, after, asked, ())
        found = forms_of(before, after)
        forms = tuple(_with_split_loops(form) for form in found if isinstance(form, Sequential))
        obstacle = next((form for form in found if isinstance(form, NoSequence)), None)
        if obstacle is not None:
            return Question(before, after, asked, forms, obstacle)
        return Question(forms[0].func, forms[1].func, asked, forms)

    def _disturbed(self) -> str | None:
        """Why threads of the function after may disturb one another in memory of the grid; None if they do not."""
        form = self.forms[1]
        for part, what in (
            (form.apart, "without a barrier between"),
            (form.under_way, "an asynchronous copy may still be under way"),
        ):
            for verdict in check_part(part):
                if verdict.status is not Status.PROVED:
                    claim = f", {verdict.claim}" if part is form.apart else ""
                    return f"{what}{claim}: {counterexample_text(verdict)}"
        return None

    def answered(self, answer: Comparison) -> Comparison:
        """The answer to what was asked, from the one for parallel loops."""
        if self.obstacle is not None:
            return _undecided(answer, self.obstacle)
        if (self.before, self.after) == self.asked:
            return answer
        answer = replace(answer, before=self.asked[0], after=self.asked[1])
        if answer.status is not Status.PROVED:
            return answer
        disturbed = self._disturbed()
        if disturbed is not None:
            return _with_first(answer, Status.UNKNOWN, disturbed, ())
        needed = licences_needed(op for form in self.forms for op in form.crosswise)
        if not needed <= answer.allowed:
            missing = ", ".join(sorted(needed - answer.allowed))
            why = f"threads join floats in an order that is not fixed, which takes {missing}"
            return _with_first(answer, Status.UNKNOWN, why, ())
        first = answer.verdicts[0]
        notes = [first.reason] if first.reason is not None else []
        if self.forms[1].apart is not None and not self.after.noalias and ASKED.text not in notes:
            notes.append(ASKED.text)
        fitting = dict.fromkeys(extent for form in self.forms for extent in form.fitting)
        notes += [f"precondition: `{expr_text(e, Style.PLAIN)}` does not overflow {e.dtype}" for e in fitting]
        notes += [_BARRIERS] if any(form.implied for form in self.forms) else []
        licences = tuple(sorted({*first.strictness, *needed}))
        return _with_first(answer, first.status, "; ".join(notes) if notes else None, licences)


def _with_split_loops(form: Sequential) -> Sequential:
    func, extents = with_split_loops(form.func)
    if not extents:
        return form
    apart, under_way = (part and with_split_loops(part)[0] for part in (form.apart, form.under_way))
    return replace(form, func=func, apart=apart, under_way=under_way, fitting=extents)


def _with_first(answer: Comparison, status: Status, reason: str | None, licences: tuple[str, ...]) -> Comparison:
    first = replace(answer.verdicts[0], status=status, reason=reason, strictness=licences)
    return replace(answer, verdicts=(first, *answer.verdicts[1:]))


def _undecided(answer: Comparison, obstacle: NoSequence) -> Comparison:
    """Nothing is refuted of a kernel whose threads are not understood."""
    place = f" ({obstacle.stmt.span})" if obstacle.stmt.span is not None else ""
    why = f"thread axes: {obstacle.reason}{place}"
    if answer.status is Status.REFUTED:
        said = Verdict(Status.UNKNOWN, answer.verdicts[0].claim, ENGINE, (), why)
        return replace(answer, verdicts=(said,), rewrite=None)
    first = answer.verdicts[0]
    return _with_first(
        answer, first.status, why if first.reason is None else f"{why}; {first.reason}", first.strictness
    )
