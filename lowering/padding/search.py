"""Which pad value makes branches unnecessary: candidates tried one by one, each answer proved.

Source: the seed `layout-transformation-padding-roadmap`, which names the search as a future possibility and leaves it open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering import codes
from layoutproof.lowering.find import find_block, find_buffer
from layoutproof.lowering.illegal import IllegalTransform
from layoutproof.lowering.layout import ROOT, TransformLayout
from layoutproof.lowering.loops.overcompute import RemoveBranchingThroughOvercompute
from layoutproof.lowering.loops.sites import GuardKind, GuardSite, guard_sites
from layoutproof.lowering.padding.report import Outcome, PadValueReport, Row
from layoutproof.lowering.padding.values import CandidateValue, candidate_values
from layoutproof.lowering.passes import Pass
from layoutproof.lowering.step import Step, prove_step
from layoutproof.verify.verdict.verdict import ClaimKind, Status


def search_pad_values(steps: Sequence[Step], block: str, buffer: str) -> PadValueReport:
    """Try pad values for the last transform of `buffer` among `steps`, and report which guards of `block` may go then.

    The steps after it are taken again, each proved, but for those that dropped guards of the block; then each guard is tried alone. Raises
    LayoutproofError where no step re-laid the buffer, and for a block or buffer that there is not.
    """
    number = _last_transform(steps, buffer)
    step = steps[number]
    assert isinstance(step.transform, TransformLayout)
    before = step.rewrite.old
    scope = before.body if block == ROOT else find_block(before, block)
    later = [s for s in steps[number + 1 :] if not _drops_guards(s.transform, block)]
    rows: list[Row] = []
    for candidate in candidate_values(scope, find_buffer(before, buffer)):
        attempt = [replace(step, transform=replace(step.transform, pad_value=candidate.pad)), *later]
        rows.append(_row(_Trying(before, attempt, block), candidate))
    return PadValueReport(block, buffer, step.transform.index_map, tuple(rows))


def _last_transform(steps: Sequence[Step], buffer: str) -> int:
    for number in reversed(range(len(steps))):
        transform = steps[number].transform
        if isinstance(transform, TransformLayout) and transform.buffer == buffer:
            return number
    known = dict.fromkeys(s.transform.buffer for s in steps if isinstance(s.transform, TransformLayout))
    hint = f"steps re-laid {', '.join(known)}" if known else "apply transform_layout first, with any pad value"
    raise error(codes.NO_LAYOUT_STEP, f"no step of the schedule re-laid {buffer}: there is no pad value to choose", help=hint)


def _drops_guards(transform: Pass, block: str) -> bool:
    return isinstance(transform, RemoveBranchingThroughOvercompute) and transform.block == block


@dataclass(frozen=True, slots=True)
class _Trying:
    """A schedule with one candidate in it: a program, the steps to take, and the block whose guards are to go."""

    start: PrimFunc
    steps: Sequence[Step]
    block: str

    def result(self) -> PrimFunc:
        """The program after the steps. Raises IllegalTransform at the first that is refused."""
        func = self.start
        for step in self.steps:
            func = prove_step(func, step.transform, where=step.where, allowed=step.allowed).rewrite.new
        return func

    def row(self, candidate: CandidateValue) -> Row:
        """The outcome for each guard of the block, by its text, and for all together that may go one by one."""
        func = self.result()
        found: dict[str, Outcome] = {}
        going: list[int] = []
        for number, site in _guards_of(func, self.block):
            choice, outcome = self.choose(func, number, site)
            found.setdefault(str(site), outcome)
            if outcome.goes:
                going.append(choice)
        if len(going) < 2:
            return Row(candidate, found)
        together = self.attempt(func, RemoveBranchingThroughOvercompute(self.block, tuple(going)))
        if together.leaves:
            together = self.attempt(func, RemoveBranchingThroughOvercompute(self.block, tuple(going), wrap=True))
        return Row(candidate, found, together)

    def choose(self, func: PrimFunc, number: int, site: GuardSite) -> tuple[int, Outcome]:
        """The first way to be rid of a guard that is proved: as it is, else with loads wrapped where only bounds stand in the way."""
        choices = (number, -1 - number) if site.has_alternative else (number,)
        plain = [(c, self.attempt(func, RemoveBranchingThroughOvercompute(self.block, (c,)))) for c in choices]
        leaving = [c for c, found in plain if found.leaves]
        wrapped = ((c, self.attempt(func, RemoveBranchingThroughOvercompute(self.block, (c,), wrap=True))) for c in leaving)
        return next(((c, found) for c, found in chain(plain, wrapped) if found.goes), plain[0])

    def attempt(self, func: PrimFunc, transform: RemoveBranchingThroughOvercompute) -> Outcome:
        last = self.steps[-1]
        try:
            proved = prove_step(func, transform, where=last.where, allowed=last.allowed)
        except IllegalTransform as problem:
            return _refused(problem)
        words = tuple(dict.fromkeys(word for v in proved.verdicts for word in v.strictness))
        return Outcome(Status.PROVED, words, transform.wrap)


def _guards_of(func: PrimFunc, block: str) -> list[tuple[int, GuardSite]]:
    """The guards of a block with their numbers; of the function's own body those among plain loops, where there are any: the others say
    where blocks fill padding.
    """
    sites = list(enumerate(guard_sites(func, block)))
    plain = [(number, site) for number, site in sites if site.kind is not GuardKind.BLOCK]
    return plain if block == ROOT and plain else sites


def _row(trying: _Trying, candidate: CandidateValue) -> Row:
    try:
        return trying.row(candidate)
    except LayoutproofError as problem:
        return Row(candidate, {}, refused=problem.diagnostics[0].message)


def _refused(problem: IllegalTransform) -> Outcome:
    verdict = problem.verdict
    if verdict is None:
        return Outcome(Status.UNKNOWN, claim=problem.diagnostics[0].message)
    return Outcome(verdict.status, claim=verdict.claim.text, reason=verdict.reason, leaves=verdict.claim.kind is ClaimKind.WITHIN_BUFFER)
