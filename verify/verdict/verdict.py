"""Claims and verdicts as objects: a verdict is proved, refuted, unknown or vacuous, never a boolean. Part of the
trusted computing base.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from layoutproof.ir.shown import Shown
from layoutproof.verify.program.location import Place
from layoutproof.verify.program.questions import Because
from layoutproof.verify.verdict import codes

if TYPE_CHECKING:
    from layoutproof.verify.program.evidence import Evidence
    from layoutproof.verify.program.questions import SmtQuery


class ClaimKind(StrEnum):
    """The kinds of claims; each has the code of a refuted one."""

    code: str

    def __new__(cls, value: str, code: str = codes.UNPROVED) -> ClaimKind:
        """A member by its name in files, with its code."""
        member = str.__new__(cls, value)
        member._value_, member.code = value, code
        return member

    CELLS = "cells", codes.CELLS
    INTERFACE = "interface", codes.INTERFACE
    RECORDS = "records", codes.RECORDS
    ASSUMPTION = "assumption", codes.ASSUMED
    WITNESS = "witness", codes.WITNESS
    WITHIN_BUFFER = "within-buffer", codes.OUTSIDE
    WITHIN_MEMORY = "within-memory", codes.OUTSIDE
    WITHIN_DOMAIN = "within-domain", codes.OUTSIDE
    DEFINED_READ = "defined-read", codes.UNDEFINED_READ
    OFF_PADDING = "off-padding", codes.PADDING_TOUCHED
    # Of all index arithmetic at once; the reason has the precondition on calls.
    SIZES_FIT = "sizes-fit", codes.OVERFLOW
    FITS = "fits", codes.OVERFLOW
    HAS_RESULT = "has-result", codes.NO_RESULT
    NO_RACE = "no-race", codes.RACE
    SAME_VALUE = "same-value", codes.OTHER_VALUE
    SAME_END = "same-end", codes.OTHER_END
    PADDING_POSTCONDITION = "padding-postcondition", codes.PADDING_POSTCONDITION
    RUNS = "runs", codes.VACUOUS
    OTHER = "other", codes.UNPROVED


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim for people: `head`, its place in brackets, if any, and `tail`. For code: its kind, its `buffers`, and
    what else tells it from others of the kind, `about`: names and texts of the program, no sentences.
    """

    kind: ClaimKind
    head: str
    place: Place | None = None
    tail: str = ""
    buffers: tuple[str, ...] = ()
    about: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The sentence."""
        return self.head + self.tail if self.place is None else f"{self.head} ({self.place}){self.tail}"

    @property
    def key(self) -> tuple[str, ...]:
        """What tells it from other claims, its place aside. Not the words, which may be others in another version."""
        return self.kind.value, *self.buffers, *self.about

    @property
    def steady(self) -> tuple[str, ...]:
        """The key with the place, but without a line number, so that edits elsewhere do not change it."""
        return (*self.key, self.place.at) if self.place is not None and self.place.line is None else self.key

    @property
    def identity(self) -> tuple[str, ...]:
        """The key with the place: what two derivations of one text have in common."""
        line = None if self.place is None else self.place.line
        return self.steady if line is None else (*self.key, str(line))

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Proved:
    """A part of a proof that holds, with the claims that a verdict is to tell of it, if any.

    A function that proves something returns it, so that one without a `return` proves nothing.
    """

    claims: tuple[Claim, ...] = ()

    @staticmethod
    def all(parts: Iterable[Proved]) -> Proved:
        """Several parts that all hold as one, each claim once."""
        return Proved(tuple(dict.fromkeys(claim for part in parts for claim in part.claims)))

    def __bool__(self) -> bool:
        raise TypeError("an answer has no truth value; look at its type")


@dataclass(frozen=True, slots=True)
class Open:
    """A part of a proof that is not known to hold, and why; `because` is the reason for code."""

    reason: str
    because: frozenset[Because] = frozenset()

    def __bool__(self) -> bool:
        raise TypeError("an answer has no truth value; look at its type")


Related = tuple[tuple[int, str], ...]


class Status(StrEnum):
    """What is known about a claim: `refuted` has a replayed counterexample, `unknown` and `vacuous` a reason."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNKNOWN = "unknown"
    VACUOUS = "vacuous"


GOOD: frozenset[Status] = frozenset({Status.PROVED})
"""What lets a step be kept."""


@dataclass(frozen=True, slots=True)
class Verdict(Shown):
    """The answer to one claim.

    `engine` decided it (`symbolic`, `isl`, `GF(2)`, `mixed-radix`, `z3`, `enumeration`, ...); `strictness` has the
    fast-math assumptions it needs; `counterexample` is plain data as in JSON; `seconds` is wall-clock time. `rests_on`
    names the laws, axioms and invariants that were used. `queries` (to solvers) and `evidence` (of other engines, if
    recorded) are for certificates, so that other solvers can be asked again. `because` is the reason for code,
    `related` the further lines of the program that it names, each with what stands there.
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

    def __repr__(self) -> str:
        return f"<{self.status.value}: {self.claim}>"

    def __bool__(self) -> bool:
        raise TypeError("a verdict has no truth value; compare its status")

    @property
    def code(self) -> str:
        """The code of what is not proved: of the claim's kind where it is refuted, else of unknown or vacuous."""
        if self.status is Status.UNKNOWN:
            return codes.UNDECIDED
        return codes.VACUOUS if self.status is Status.VACUOUS else self.claim.kind.code

    def to_dict(self) -> dict[str, Any]:
        """The verdict as JSON."""
        return {
            "status": self.status.value,
            "claim": self.claim.text,
            "engine": self.engine,
            "strictness": list(self.strictness),
            "reason": self.reason,
            "counterexample": dict(self.counterexample) if self.counterexample is not None else None,
            "seconds": self.seconds,
        }
