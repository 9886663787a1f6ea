"""What several engines make of one query, and what that says of the claim behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from layoutproof.verify.smt.engines import Reply, formats_of
from layoutproof.verify.smt.query import SmtQuery
from layoutproof.verify.smt.session import Answer

_NONLINEAR = ("NIA", "NRA", "NIRA")


class Agreement(StrEnum):
    """How engines stand to what a query expects, best first."""

    CONFIRMED = "confirmed"  # two engines or more say so, none says otherwise
    SINGLE = "single"  # one does, the others do not know
    OPEN = "open"  # none knows
    WRONG = "wrong"  # those that know say otherwise
    DISAGREEMENT = "disagreement"  # engines contradict each other


@dataclass(frozen=True, slots=True)
class Asked:
    """A query with what each engine said."""

    query: SmtQuery
    replies: Mapping[str, Reply]

    @property
    def agreement(self) -> Agreement:
        """What the replies come to."""
        known = [reply.answer for reply in self.replies.values() if reply.answer is not Answer.UNKNOWN]
        right = sum(answer.value == self.query.expected for answer in known)
        if right < len(known):
            return Agreement.DISAGREEMENT if right else Agreement.WRONG
        return Agreement.OPEN if right == 0 else Agreement.SINGLE if right == 1 else Agreement.CONFIRMED

    @property
    def excuse(self) -> str | None:
        """Why one engine is enough for this query, where it is: other solvers are not made for what it asks."""
        if self.query.logic.endswith(_NONLINEAR):
            return "products or quotients of variables, which solvers decide only sometimes"
        formats = formats_of(self.query.text)
        return f"{' and '.join(sorted(formats))}, which not every solver has" if formats else None

    def said(self) -> str:
        """`z3 unsat, cvc5 unknown (timeout)`."""
        return ", ".join(
            f"{engine} {reply.answer.value}{f' ({reply.reason})' if reply.reason is not None else ''}"
            for engine, reply in self.replies.items()
        )
