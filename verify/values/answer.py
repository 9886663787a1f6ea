"""The answer to a question about values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from layoutproof.verify.search import Because
from layoutproof.verify.smt.query import SmtQuery
from layoutproof.verify.values.licences import IEEE, Licences
from layoutproof.verify.verdict import Status

STRUCTURE = "structure"
LAWS = "laws"
ENUMERATION = "enumeration"
TRIALS = "trials"
REALS = "exact reals"
WALL = "wall"


@dataclass(frozen=True, slots=True)
class ValueAnswer:
    """What is known of a claim about values.

    `proved`: under `licences`, none of which can be left out unless a smaller set was `unknown`; `reason` then says which were.
    `refuted`: under everything allowed; `model` was run, and refutes it. `unknown`: `reason` says why. `because`: BUDGET where a
    solver was not allowed to do more, CLOCK where one was stopped by the clock (or died) on the way; the latter is not to be kept.

    `model` gives variables by name the values (Python floats, integers, truth values) that refute the strictest question that failed:
    with a proof that needs licences, a case that shows that they are needed. `engine` names what decided. `queries` are what solvers
    answered, each self-contained; `laws` the named laws and axioms that were used.
    """

    status: Status
    licences: Licences = IEEE
    engine: str = STRUCTURE
    reason: str | None = None
    model: Mapping[str, float | int] | None = None
    queries: tuple[SmtQuery, ...] = ()
    laws: tuple[str, ...] = ()
    because: frozenset[Because] = frozenset()

    @property
    def is_proved(self) -> bool:
        """Whether the claim holds."""
        return self.status is Status.PROVED

    @property
    def depends_on_clock(self) -> bool:
        """Whether it may come out otherwise next time."""
        return Because.CLOCK in self.because


def together(answers: Sequence[ValueAnswer]) -> ValueAnswer:
    """The answer to several questions at once, one at least: the first that is not proved, else that all are, under the licences that any
    of them needs.
    """
    failed = next((a for a in answers if not a.is_proved), None)
    if failed is not None:
        return failed
    return replace(
        next((a for a in answers if a.licences), answers[0]),
        licences=frozenset(licence for a in answers for licence in a.licences),
        queries=tuple(query for a in answers for query in a.queries),
        laws=tuple(dict.fromkeys(law for a in answers for law in a.laws)),
        because=frozenset[Because]().union(*(a.because for a in answers)),
    )
