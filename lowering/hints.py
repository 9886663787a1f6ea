"""What could be done about a verdict that is not proved, where that is known."""

from __future__ import annotations

from layoutproof.verify.program.questions import Because
from layoutproof.verify.verdict.verdict import Status, Verdict


def hint_of(verdict: Verdict) -> str | None:
    """What could be done about a verdict, where its status and what is known of its reason tell."""
    if verdict.status is Status.VACUOUS and Because.NOTHING_SEEN in verdict.because:
        return "store what is computed to a parameter, where callers see it"
    if verdict.status is Status.VACUOUS and Because.CONTRADICTION in verdict.because:
        return "take out or mend the assumptions that contradict each other"
    if verdict.status is Status.VACUOUS:
        return "mend the fault that every run meets"
    if verdict.status is Status.UNKNOWN and Because.OVERLAP in verdict.because:
        return 'state that parameters do not overlap: T.func_attr({"tirx.noalias": True})'
    if verdict.status is Status.UNKNOWN and Because.BUDGET in verdict.because:
        return "bounds on sizes, stated by the program, or a larger --budget may decide it"
    return None
