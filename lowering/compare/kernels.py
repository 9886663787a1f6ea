"""Comparisons of functions with thread axes: as functions with parallel loops, which is what they mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block
from layoutproof.ir.threads.sequential import NoSequence, Sequential, sequential
from layoutproof.ir.visit import walk
from layoutproof.lowering.compare.answers import ENGINE
from layoutproof.lowering.compare.comparison import Comparison
from layoutproof.verify.lockstep.memories import ASKED
from layoutproof.verify.values.fast_math import Licence, Licences
from layoutproof.verify.verdict.verdict import Status, Verdict, counterexample_text

_ORDER: dict[BinaryOp, Licences] = {
    BinaryOp.ADD: frozenset({Licence.REASSOC, Licence.NSZ}),
    BinaryOp.MUL: frozenset({Licence.REASSOC, Licence.NSZ}),
    BinaryOp.MIN: frozenset({Licence.NNAN, Licence.NSZ}),
    BinaryOp.MAX: frozenset({Licence.NNAN, Licence.NSZ}),
}
"""What it takes for a result to be the same in every order of threads: sums of floats differ by rounding, and which NaN
or zero a minimum yields depends on the order."""

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
        found = [sequential(func) for func in asked]
        old, new = found
        if isinstance(new, Sequential) and new.implied and not (_has_blocks(after) or _is_implied(old)):
            # Barriers are put in when blocks are lowered: what came of plain loops, or has some, has to have all.
            found[1] = sequential(after, as_written=True)
        forms = tuple(form for form in found if isinstance(form, Sequential))
        obstacle = next((form for form in found if isinstance(form, NoSequence)), None)
        if obstacle is not None:
            return Question(before, after, asked, forms, obstacle)
        return Question(forms[0].func, forms[1].func, asked, forms)

    def _disturbed(self) -> str | None:
        """Why threads of the function after may disturb one another in memory of the grid; None if they do not."""
        from layoutproof.verify.faults.facts import Facts
        from layoutproof.verify.faults.races import prove_race_free

        form = self.forms[1]
        for part, what in (
            (form.apart, "without a barrier between"),
            (form.under_way, "an asynchronous copy may still be under way"),
        ):
            found = prove_race_free(Facts.of(part.with_parameters_apart())) if part is not None else ()
            for verdict in found:
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
        needed = _needed(op for form in self.forms for op in form.crosswise)
        if not needed <= answer.allowed:
            missing = ", ".join(sorted(needed - answer.allowed))
            why = f"threads join floats in an order that is not fixed, which takes {missing}"
            return _with_first(answer, Status.UNKNOWN, why, ())
        first = answer.verdicts[0]
        notes = [first.reason] if first.reason is not None else []
        if self.forms[1].apart is not None and not self.after.noalias and ASKED.text not in notes:
            notes.append(ASKED.text)
        notes += [_BARRIERS] if any(form.implied for form in self.forms) else []
        licences = tuple(sorted({*first.strictness, *needed}))
        return _with_first(answer, first.status, "; ".join(notes) if notes else None, licences)


def _has_blocks(func: PrimFunc) -> bool:
    return any(isinstance(node, Block) and not node.is_root for node in walk(func.body))


def _is_implied(form: Sequential | NoSequence) -> bool:
    return isinstance(form, Sequential) and form.implied


def _needed(operators: Iterable[BinaryOp]) -> Licences:
    needed: Licences = frozenset()
    for op in operators:
        needed |= _ORDER[op]
    return needed


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
