"""The checker's verdicts, what it leaves open refuted where a run shows a difference.

Apart from the checker, so that nothing here can make a proof.
"""

from __future__ import annotations

from layoutproof.ir.expr import Expr
from layoutproof.ir.rewrite import Rewrite
from layoutproof.verify.checker import Checked, prove_rewrite
from layoutproof.verify.evidence import UNRECORDED, Gathered
from layoutproof.verify.replay.search import find_counterexample
from layoutproof.verify.values.licences import ALL, Licences
from layoutproof.verify.verdict import Status, Verdict

REPLAY = "replay"


def check_rewrite(
    rewrite: Rewrite, where: Expr | None = None, *, allowed: Licences = ALL, gathered: Gathered = UNRECORDED
) -> tuple[Verdict, ...]:
    """The verdicts on a rewrite, as `verify.checker.prove_rewrite` has them; where one is open, both programs are run.

    Raises LayoutproofError as that does.
    """
    return _run(rewrite, where, prove_rewrite(rewrite, where, allowed=allowed, gathered=gathered), allowed)


def _run(rewrite: Rewrite, where: Expr | None, checked: Checked, allowed: Licences) -> tuple[Verdict, ...]:
    """The verdicts, the first that is not decided refuted where a run shows a difference."""
    verdicts = checked.verdicts
    statuses = {v.status for v in verdicts}
    if Status.UNKNOWN not in statuses or Status.REFUTED in statuses:
        return verdicts
    # Under a licence that may be used, a difference that it would allow refutes nothing.
    found = find_counterexample(rewrite, where=where, hints=checked.hints, licences=allowed, suspects=checked.suspects)
    if found is None:
        return verdicts
    position = next(k for k, v in enumerate(verdicts) if v.status is Status.UNKNOWN)
    open_one = verdicts[position]
    refuted = Verdict(Status.REFUTED, open_one.claim, REPLAY, reason=found.text(), counterexample=found.to_dict(), seconds=open_one.seconds)
    return (*verdicts[:position], refuted, *verdicts[position + 1 :])
