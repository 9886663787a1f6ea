"""The answer to a question about values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
    `refuted`: under everything allowed; `model` was run, and refutes it. `unknown`: `reason` says why. `depends_on_clock`: a solver was
    stopped by the clock (or died) on the way, and the answer may come out otherwise next time; it is not to be kept.

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
    depends_on_clock: bool = False

    @property
    def is_proved(self) -> bool:
        """Whether the claim holds."""
        return self.status is Status.PROVED
