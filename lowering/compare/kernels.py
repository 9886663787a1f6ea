"""Comparisons of functions with thread axes: as functions with parallel loops, which is what they mean."""

from __future__ import annotations

from dataclasses import dataclass, replace

from layoutproof.ir.primfunc import MAY_OVERLAP, PrimFunc
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.threads.sequential import NoSequence, Sequential
from layoutproof.lowering.compare.answers import ENGINE
from layoutproof.lowering.compare.comparison import Comparison
from layoutproof.lowering.compare.split_loops import with_split_loops
from layoutproof.lowering.compare.tuple_joins import packed
from layoutproof.lowering.compare.tuple_laws import NotPacked
from layoutproof.lowering.passes.as_loops import check_part, forms_of, licences_needed
from layoutproof.verify.lockstep.memories import ASKED
from layoutproof.verify.values.fast_math import Licences
from layoutproof.verify.values.prover import ValueProver
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status, Verdict, counterexample_text

_OTHER_TUPLES = "threads join tuples, and not known to be the same ones in both programs"
_BARRIERS = "barriers are taken to stand where threads meet in shared memory, as TVM puts them"


@dataclass(frozen=True, slots=True)
class Question:
    """Two functions, thread axes written as parallel loops, and what was asked about."""

    before: PrimFunc
    after: PrimFunc
    asked: tuple[PrimFunc, PrimFunc]
    forms: tuple[Sequential, ...]
    obstacle: NoSequence | None = None
    joins: tuple[str, ...] | None = None

    @staticmethod
    def of(before: PrimFunc, after: PrimFunc, allowed: Licences, *, plain: bool) -> Question:
        """The question as parallel loops, as far as it can be written so. Anything but functions is left as it is.
        `plain`: no layouts or names are stated.
        """
        asked = (before, after)
        if not all(isinstance(func, PrimFunc) for func in asked):
            return Question(before, after, asked, ())
        found = forms_of(before, after)
        forms = tuple(_with_split_loops(form) for form in found if isinstance(form, Sequential))
        obstacle = next((form for form in found if isinstance(form, NoSequence)), None)
        if obstacle is not None:
            return Question(before, after, asked, forms, obstacle)
        if not any(form.tuples for form in forms):
            return Question(forms[0].func, forms[1].func, asked, forms)
        try:
            if MAY_OVERLAP in before.attrs or not plain:
                raise NotPacked("with layouts that are stated, or parameters that may overlap")
            sums = packed(forms[0], forms[1], ValueProver(allowed))
        except NotPacked as problem:
            return Question(before, after, asked, forms, NoSequence(f"threads join tuples: {problem}", after.body))
        return Question(sums.before, sums.after, asked, forms, joins=sums.licences)

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
        if self.joins is not None:
            # The programs with sums have other values: of a difference between them nothing follows.
            answer = replace(answer, rewrite=None)
            if answer.status is not Status.PROVED:
                said = Verdict(Status.UNKNOWN, answer.verdicts[0].claim, ENGINE, (), _OTHER_TUPLES)
                return replace(answer, verdicts=(said,))
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
        apart = self.forms[1].apart is not None or self.joins is not None
        if apart and not self.after.noalias and ASKED.text not in notes:
            notes.append(ASKED.text)
        fitting = dict.fromkeys(extent for form in self.forms for extent in form.fitting)
        notes += [f"precondition: `{expr_text(e, Style.PLAIN)}` does not overflow {e.dtype}" for e in fitting]
        notes += [_BARRIERS] if any(form.implied for form in self.forms) else []
        if self.joins is not None:
            claim = Claim(ClaimKind.OTHER, "tuples are joined alike in every order", about=("tuple-order",))
            answer = replace(answer, verdicts=(*answer.verdicts, Verdict(Status.PROVED, claim, ENGINE, self.joins)))
        licences = tuple(sorted({*first.strictness, *needed, *(self.joins or ())}))
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
