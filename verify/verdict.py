"""Verdicts: exactly one of proved, refuted, unknown, vacuous. A boolean is never used for one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from layoutproof.verify import codes
from layoutproof.verify.claim import Claim, ClaimKind
from layoutproof.verify.evidence import Evidence
from layoutproof.verify.search import Because
from layoutproof.verify.smt.query import SmtQuery
from layoutproof.verify.spot import Place

Related = tuple[tuple[int, str], ...]


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
    answered (only where somebody records): certificates hold both, so that other solvers can be asked again; reports do not. `because` is
    what code asks of the reason, `related` the further lines of the program that it names, each with what stands there.
    """

    status: Status
    claim: Claim
    engine: str
    strictness: tuple[str, ...] = ()
    reason: str | None = None
    counterexample: Mapping[str, Any] | None = None
    seconds: float = 0.0
    rests_on: tuple[str, ...] = ()
    queries: tuple[SmtQuery, ...] = ()
    evidence: tuple[Evidence, ...] = field(default=(), compare=False, repr=False)
    because: frozenset[Because] = frozenset()
    related: Related = ()

    def __post_init__(self) -> None:
        if not isinstance(self.claim, Claim):
            raise TypeError(f"{self.claim!r} is no Claim, which has a kind and its words")
        if self.status is Status.REFUTED and self.counterexample is None:
            raise ValueError("a refutation needs a counterexample")
        if self.status in (Status.UNKNOWN, Status.VACUOUS) and not self.reason:
            raise ValueError(f"{self.status} needs a reason")

    def __bool__(self) -> bool:
        raise TypeError("a verdict has no truth value; compare its status")

    @property
    def code(self) -> str:
        """The code of what is not proved: by the claim's kind where it is refuted, of their own for what is unknown or vacuous."""
        if self.status is Status.UNKNOWN:
            return codes.UNDECIDED
        return codes.VACUOUS if self.status is Status.VACUOUS else self.claim.kind.code

    def to_dict(self) -> dict[str, Any]:
        """The verdict as JSON has it."""
        return {
            "status": self.status.value,
            "claim": self.claim.text,
            "engine": self.engine,
            "strictness": list(self.strictness),
            "reason": self.reason,
            "counterexample": dict(self.counterexample) if self.counterexample is not None else None,
            "seconds": self.seconds,
        }

    def to_entry(self) -> dict[str, Any]:
        """The verdict as it is kept and sent to other processes: as JSON has it, with what code asks of it, and what it rests on."""
        claim, place = self.claim, self.claim.place
        parts = [claim.head, None if place is None else [place.words, place.line], claim.tail]
        about = {"kind": claim.kind.value, "parts": parts, "buffers": list(claim.buffers)}
        known = {"because": sorted(self.because), "related": [list(each) for each in self.related]}
        return {**self.to_dict(), **about, **known, "rests_on": list(self.rests_on)}

    @staticmethod
    def of_entry(entry: Mapping[str, Any]) -> Verdict:
        """The verdict that `to_entry` wrote. Raises ValueError, KeyError or TypeError for anything else."""
        head, place, tail = entry["parts"]
        claim = Claim(ClaimKind(entry["kind"]), head, None if place is None else Place(*place), tail, tuple(entry["buffers"]))
        if claim.text != entry["claim"]:
            raise ValueError(f"a claim is not what its parts make: {entry['claim']}")
        return Verdict(
            Status(entry["status"]),
            claim,
            str(entry["engine"]),
            tuple(map(str, entry["strictness"])),
            entry["reason"],
            entry["counterexample"],
            float(entry["seconds"]),
            tuple(map(str, entry["rests_on"])),
            because=frozenset(map(Because, entry["because"])),
            related=tuple((line, what) for line, what in entry["related"]),
        )


def worst(statuses: Iterable[Status]) -> Status:
    """The worst of several: refuted, unknown, vacuous, proved; proved when there are none."""
    found = set(statuses)
    return next((status for status in _WORST_FIRST if status in found), Status.PROVED)
