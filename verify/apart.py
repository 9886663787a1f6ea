"""Whether the parameters of a rewrite's programs do not overlap: assumed by the old one, or by this step under a name of its own, which
every call is asked for. Part of the trust base.
"""

from __future__ import annotations

from layoutproof.ir.primfunc import APART, NOALIAS, PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.verify.claim import Claim, ClaimKind

UNSAID = "the new program assumes that parameters do not overlap, and does not say so as a step's own assumption"
ASKED = Claim(ClaimKind.ASSUMPTION, "parameters do not overlap, which is asked of every call")


def _claims(function: PrimFunc) -> set[str]:
    return {key for key in NOALIAS if function.attrs.get(key) in (True, 1)}


def is_unsaid(rewrite: Rewrite) -> bool:
    """Whether the new program assumes it as if it had been assumed before."""
    return not _claims(rewrite.old) and bool(_claims(rewrite.new) - {APART})


def are_apart(rewrite: Rewrite) -> bool:
    """Whether it may be taken for granted, in both programs."""
    return bool(_claims(rewrite.old) | _claims(rewrite.new)) and not is_unsaid(rewrite)


def is_asked(rewrite: Rewrite) -> bool:
    """Whether this step is the one that takes it for granted, and there is something to ask."""
    return are_apart(rewrite) and not _claims(rewrite.old) and len(rewrite.old.buffers) > 1
