"""Verdicts: exactly one of proved, refuted, unknown, vacuous. A boolean is never used for one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from layoutproof.verify.evidence import Evidence
from layoutproof.verify.smt.query import SmtQuery


class Status(StrEnum):
    """What is known about a claim. `refuted` has a counterexample that was replayed; `unknown` a reason; `vacuous` nothing to hold for."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNKNOWN = "unknown"
    VACUOUS = "vacuous"


_WORST_FIRST = (Status.REFUTED, Status.UNKNOWN, Status.VACUOUS, Status.PROVED)
GOOD: frozenset[Status] = frozenset({Status.PROVED})
"""What lets a step be kept."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to one claim.

    `engine` says what decided it (`structure`, `isl`, `f2`, `mixed-radix`, `z3`, `enumeration`, ...); `strictness` lists the float licences
    it needs; `counterexample` is plain data (numbers, lists, dictionaries) as JSON has it; `seconds` is wall-clock time. `rests_on`
    names the laws, axioms and invariants that were used; `queries` are what solvers were asked for it, `evidence` what other engines
    answered (only where somebody records): certificates hold both, so that other solvers can be asked again; reports do not.
    """

    status: Status
    claim: str
    engine: str
    strictness: tuple[str, ...] = ()
    reason: str | None = None
    counterexample: Mapping[str, Any] | None = None
    seconds: float = 0.0
    rests_on: tuple[str, ...] = ()
    queries: tuple[SmtQuery, ...] = ()
    evidence: tuple[Evidence, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.status is Status.REFUTED and self.counterexample is None:
            raise ValueError("a refutation needs a counterexample")
        if self.status in (Status.UNKNOWN, Status.VACUOUS) and not self.reason:
            raise ValueError(f"{self.status} needs a reason")

    def __bool__(self) -> bool:
        raise TypeError("a verdict has no truth value; compare its status")

    def to_dict(self) -> dict[str, Any]:
        """The verdict as JSON has it."""
        return {
            "status": self.status.value,
            "claim": self.claim,
            "engine": self.engine,
            "strictness": list(self.strictness),
            "reason": self.reason,
            "counterexample": dict(self.counterexample) if self.counterexample is not None else None,
            "seconds": self.seconds,
        }


def worst(statuses: Iterable[Status]) -> Status:
    """The worst of several: refuted, unknown, vacuous, proved; proved when there are none."""
    found = set(statuses)
    return next((status for status in _WORST_FIRST if status in found), Status.PROVED)
