"""One step of a schedule, and how a pass becomes one: proposed, checked, or refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from layoutproof.ir.diagnostic import Diagnostic
from layoutproof.ir.expr import Expr
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.lowering import codes
from layoutproof.lowering.illegal import IllegalTransform, refusing
from layoutproof.lowering.passes import Pass
from layoutproof.lowering.proving import check_step
from layoutproof.verify.checker import StepRecord
from layoutproof.verify.values.fast_math import ALL, Licences
from layoutproof.verify.verdict.verdict import GOOD, Status, Verdict, worst


@dataclass(frozen=True, slots=True)
class Step:
    """One applied transform: the pass, the rewrite that it proposed, and the verdicts under which it was kept.

    `where` is what was taken for granted of symbols, `allowed` the float licences that proofs could use.
    """

    transform: Pass
    rewrite: Rewrite
    verdicts: tuple[Verdict, ...]
    where: Expr | None = None
    allowed: Licences = ALL

    @property
    def record(self) -> StepRecord:
        """The step as certificates have it."""
        return StepRecord(self.transform.primitive, self.transform.arguments(), self.rewrite, self.where, self.allowed)

    @property
    def status(self) -> Status:
        """The worst of the verdicts."""
        return worst(v.status for v in self.verdicts)

    def to_dict(self) -> dict[str, Any]:
        """The step as JSON has it."""
        obligations = [v.to_dict() for v in self.verdicts]
        return {"primitive": self.transform.primitive, "arguments": self.transform.arguments(), "obligations": obligations}

    def __str__(self) -> str:
        return str(self.transform)


def prove_step(
    func: PrimFunc,
    transform: Pass,
    *,
    fixed: bool = False,
    where: Expr | None = None,
    accepted: frozenset[Status] = GOOD,
    known: tuple[Verdict, ...] | None = None,
    allowed: Licences = ALL,
    search: bool = True,
) -> Step:
    """The step that a pass makes of a function, checked. Raises IllegalTransform where it does not apply or is not proved.

    `known` are verdicts on `func` as it is, under the same `where`: they stand where a pass changes nothing. Without `search` no
    counterexample is looked for where a proof fails.
    """
    with refusing():
        rewrite = transform.propose(func)
    if fixed and rewrite.witness.changes_interface:
        names = ", ".join(rewrite.witness.changes_interface)
        message = f"{transform.primitive} would change the layout of the parameter {names}, and the schedule's interface is fixed"
        raise IllegalTransform(Diagnostic(codes.FIXED_INTERFACE, message, func.span))
    if known is not None and rewrite.new == func:
        # What needed licences was said of how the program came about.
        return Step(transform, rewrite, tuple(v for v in known if not v.strictness), where, allowed)
    return Step(transform, rewrite, check_step(transform, rewrite, where, accepted, allowed, search), where, allowed)
