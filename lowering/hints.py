"""What could be done about a verdict that is not proved, where that is known."""

from __future__ import annotations

import re

from layoutproof.verify.verdict import Status, Verdict

_SPENT = re.compile(r"\bbudget\b|\bspent\b|\btoo many\b")


def hint_of(verdict: Verdict) -> str | None:
    """What could be done about a verdict, where its status and reason tell."""
    reason = verdict.reason if verdict.reason is not None else ""
    if verdict.status is Status.VACUOUS and "observed" in reason:
        return "store what is computed to a parameter, where callers see it"
    if verdict.status is Status.VACUOUS and "assumption" not in reason:
        return "mend the fault that every run meets"
    if verdict.status is Status.VACUOUS:
        return "take out or mend the assumptions that contradict each other"
    if verdict.status is Status.UNKNOWN and "noalias" in reason:
        return 'state that parameters do not overlap: T.func_attr({"tirx.noalias": True})'
    if verdict.status is Status.UNKNOWN and _SPENT.search(reason):
        return "bounds on sizes, stated by the program, or a larger --budget may decide it"
    return None
