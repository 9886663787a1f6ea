"""That two programs do the same: in lockstep where that goes, else by dataflow. If that is open, tables and copies are
looked through. Part of the trusted computing base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from layoutproof.ir.expr import Expr, Not
from layoutproof.ir.rewrite import Rewrite
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.flow.forwarded import forwarded_rewrite
from layoutproof.verify.flow.hints import SuspectCell
from layoutproof.verify.flow.simulate import simulate
from layoutproof.verify.lockstep.prove import ENGINE, Lockstep, prove_lockstep
from layoutproof.verify.program.instances import IterationDomain
from layoutproof.verify.program.traps import is_in_stored_values
from layoutproof.verify.values.fast_math import IEEE
from layoutproof.verify.values.prover import ValueProver
from layoutproof.verify.values.solving import QUICK
from layoutproof.verify.verdict.verdict import ClaimKind, Status, Verdict


@dataclass(frozen=True, slots=True)
class Checked:
    """The verdicts on a rewrite, cells first, and hints for a run where one is open: values by name, cells."""

    verdicts: tuple[Verdict, ...]
    hints: Sequence[Mapping[str, float | int]] = ()
    suspect_cells: Sequence[SuspectCell] = ()


def prove_same_program(rewrite: Rewrite, old: Facts, new: Facts, where: Expr | None, values: ValueProver) -> Checked:
    """That both do the same; if that is open, with loads of filled temporaries replaced by what they find. Neither has
    a fault there that it does not have as it stands, which was proved of the new program.
    """
    found = _as_it_stands(rewrite, old, new, values)
    again = None if all(v.status is Status.PROVED for v in found.verdicts) else forwarded_rewrite(rewrite)
    if again is None:
        return found
    old.gathered.taken()
    first = old if again.old is rewrite.old else Facts.of(again.old, where, gathered=old.gathered)
    second = new if again.new is rewrite.new else Facts.of(again.new, where, again.old, gathered=new.gathered)
    if not _may_assume(second, new, first):
        return found
    other = _as_it_stands(again, first, second, values)
    return other if all(v.status is Status.PROVED for v in other.verdicts) else found


def _may_assume(facts: Facts, stated: Facts, old: Facts) -> bool:
    """Whether what a program assumes of its symbols is `stated` in it, or follows in the old one. With what a load
    finds in its place, an assumption about the cell is one about symbols, which no other claim is about.
    """
    more = (each for each in facts.program.assumed if each not in stated.program.assumed)
    return all(old.search(IterationDomain(), Not(each)).is_empty for each in more)


def prove_results(
    rewrite: Rewrite, old: Facts, new: Facts, faults: Sequence[Verdict], values: ValueProver
) -> tuple[Verdict, ...]:
    """The verdicts on the new program's faults. Where all that is open is whether operations on data have a result,
    that is proved if the old program evaluates them on the same operands, so that it has a fault where the new one has.
    """
    left = [v for v in faults if v.status is not Status.PROVED]
    asked = all(v.status is Status.UNKNOWN and v.claim.kind is ClaimKind.HAS_RESULT for v in left)
    if not left or not asked or not is_in_stored_values(rewrite.new):
        return tuple(faults)
    # Under fast-math assumptions what the old program computes is not what the new one does.
    exactly = values.under(IEEE)
    walked = prove_lockstep(rewrite, old, new, exactly.for_check(QUICK), traps=True)
    if not isinstance(walked, Lockstep):
        found = simulate(rewrite, old, new, exactly.for_check(values.budget), traps=True)
        if any(v.status is not Status.PROVED for v in found.verdicts):
            return tuple(faults)
    why = "where it has none, it has none in the old program"
    done = {v.claim: replace(v, status=Status.PROVED, engine=ENGINE, reason=why, because=frozenset()) for v in left}
    return tuple(done.get(v.claim, v) if v in left else v for v in faults)


def _as_it_stands(rewrite: Rewrite, old: Facts, new: Facts, values: ValueProver) -> Checked:
    """Lockstep where it goes, else dataflow, with what a run should look at where that failed."""
    # Each way has a budget of its own: what one spends leaves the other what it has.
    checking = values.for_check(QUICK)
    lockstep = prove_lockstep(rewrite, old, new, checking)
    if isinstance(lockstep, Lockstep):
        first, *others = lockstep.verdicts
        return Checked((replace(first, queries=(*first.queries, *checking.queries)), *others))
    old.gathered.taken()  # What was asked on the way to a proof that failed is evidence of nothing.
    found = simulate(rewrite, old, new, checking.for_check(values.budget))
    if all(v.status is Status.PROVED for v in found.verdicts):
        return Checked(found.verdicts)
    note = f" (simulation: {lockstep.reason})"
    failed = next(k for k, v in enumerate(found.verdicts) if v.status is not Status.PROVED)
    told = replace(found.verdicts[failed], reason=f"{found.verdicts[failed].reason}{note}")
    return Checked((*found.verdicts[:failed], told, *found.verdicts[failed + 1 :]), found.hints, found.suspect_cells)
