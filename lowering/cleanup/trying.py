"""Asking the checker about a rewrite before it is proposed, so that of several changes those are proposed that can be proved.

What is proposed in the end is checked again, like any proposal.
"""

from __future__ import annotations

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.wellformed import check_wellformed
from layoutproof.lowering.witness import count_stores
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.values.fast_math import IEEE
from layoutproof.verify.verdict.verdict import Status

MAX_WORK = 2048
"""Stores of all programs that one pass asks about, together: a large program is asked about less often."""


def tries_for(func: PrimFunc) -> int:
    """How many rewrites of a function a pass asks about, at most."""
    return MAX_WORK // max(1, count_stores(func.body))


def is_proved(rewrite: Rewrite) -> bool:
    """Whether the checker accepts a rewrite bit for bit, without assumptions from elsewhere; of a program that does nothing, too."""
    if rewrite.new == rewrite.old:
        return True
    if check_wellformed(rewrite.new):
        return False
    return all(v.status in (Status.PROVED, Status.VACUOUS) for v in prove_rewrite(rewrite, allowed=IEEE).verdicts)
