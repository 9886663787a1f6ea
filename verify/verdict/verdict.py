"""Claims and verdicts as objects: a verdict is proved, refuted, unknown or vacuous, never a boolean. And the clauses of
the checker by name: each excludes a kind of wrong program, and has one in `proofs/refuted`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError
from layoutproof.ir.shown import Shown
from layoutproof.verify.program.location import Place
from layoutproof.verify.program.questions import Because
from layoutproof.verify.verdict import codes

if TYPE_CHECKING:
    from layoutproof.verify.program.evidence import Evidence
    from layoutproof.verify.program.questions import SmtQuery


class Clause(StrEnum):
    """One clause of the conditions under which a rewrite is accepted."""

    CELLS_INJECTIVE = "cells-injective"  # no two cells of one memory become one
    CELLS_INSIDE = "cells-inside"  # every cell gets a place in the new memory
    CELLS_APART = "cells-apart"  # no two memories become one
    INTERFACE = "interface"  # parameters keep their order, types and, declared changes aside, shapes and cells
    INPUTS_KEPT = "inputs-kept"  # a parameter that the old program never writes is never written
    RECORDS = "records"  # layout records go on where they were, and a changed interface is recorded
    FAULTS = "faults"  # bounds, index arithmetic, traps, readability, forbidden padding
    CONTENTS = "contents"  # a data-dependent index is in bounds only where the old program certainly uses it so
    RACES = "races"  # iterations of parallel and vector loops do not meet
    OPAQUE = "opaque"  # opaque calls run as often, with the same arguments, in the same order
    ORDER = "order"  # every read has the source that its counterpart has
    LOST_SOURCE = "lost-source"  # a source without an image is a refusal, not a pair dropped
    NO_OPS = "no-ops"  # an extra instance is deleted only when it stores the value that is there
    LAST_WRITER = "last-writer"  # a fact serves a read only if its origin is that read's last writer
    INVARIANT_START = "invariant-start"  # an invariant holds of entry values that may be read
    INVARIANT_KEPT = "invariant-kept"  # every write, extra ones included, preserves an invariant
    INLINED_SOURCES = "inlined-sources"  # what stands for a load has the sources that it had when it was stored
    INLINED_PARTS = "inlined-parts"  # what stands for a load is, on each part, what that load finds there
    INLINED_UNDEFINED = "inlined-undefined"  # an undefined value that was stored once does not stand for several loads
    INLINED_LICENCES = "inlined-licences"  # a free choice of an operation is made once, for all loads of its result
    VALUES = "values"  # matched instances compute the same value
    LICENCE_SCOPE = "licence-scope"  # licences restrict only values that the old program computes
    ZERO_SIGN = "zero-sign"  # what is equal but for the sign of a zero is not read by what tells the two apart
    REDUCTION_FORM = "reduction-form"  # only `acc (+) e` with `e` independent of `acc` is regrouped
    REDUCTION_LAW = "reduction-law"  # only operators that regroup under the licences in force
    CONTRIBUTIONS = "contributions"  # every reader of a reduction sees the same multiset of contributions
    PARTIAL_START = "partial-start"  # a partial result that is added later began with a neutral value
    PARTIAL_ONCE = "partial-once"  # no contribution to a partial result is added twice
    ASSUMPTIONS = "assumptions"  # a new assumption follows from old ones, or speaks of a parameter's padding only
    PADDING_POSTCONDITION = "padding-postcondition"  # padding whose contract is a value holds it at the end
    OBSERVABLE = "observable"  # output buffers are preserved
    VACUITY = "vacuity"  # some input satisfies all assumptions; on it the old program stores something observable


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


_LONGEST_REASON = 160  # characters of one that a report's short text has
_WORST_FIRST = (Status.REFUTED, Status.UNKNOWN, Status.VACUOUS, Status.PROVED)
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

    def to_entry(self) -> dict[str, Any]:
        """The verdict as it is kept and sent to other processes: `to_dict` with what code asks of it."""
        claim, place = self.claim, self.claim.place
        parts = [claim.head, None if place is None else [place.words, place.line, place.at], claim.tail]
        about = {
            "kind": claim.kind.value,
            "parts": parts,
            "buffers": list(claim.buffers),
            "about": list(claim.about),
        }
        known = {"because": sorted(self.because), "related": [list(each) for each in self.related]}
        return {**self.to_dict(), **about, **known, "rests_on": list(self.rests_on)}

    @staticmethod
    def of_entry(entry: Mapping[str, Any]) -> Verdict:
        """The verdict that `to_entry` wrote. Raises ValueError, KeyError or TypeError for anything else."""
        head, place, tail = entry["parts"]
        place = None if place is None else Place(*place)
        claim = Claim(ClaimKind(entry["kind"]), head, place, tail, tuple(entry["buffers"]), tuple(entry["about"]))
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


_WORDS = {Status.REFUTED: "is refuted", Status.UNKNOWN: "is not decided", Status.VACUOUS: "is vacuous"}


def counterexample_text(verdict: Verdict) -> str | None:
    """Why a verdict is not `proved`, in one line: its reason, else its counterexample; None if it has neither."""
    found = verdict.counterexample
    if verdict.reason is not None or found is None:
        return verdict.reason
    if {"first", "second", "image"} <= set(found):
        symbols = found.get("symbols", {})
        given = f", for {', '.join(f'{name} = {value}' for name, value in symbols.items())}" if symbols else ""
        return f"{found['first']} and {found['second']} both go to {found['image']}{given}"
    return ", ".join(f"{name}: {value}" for name, value in found.items())


class NotProved(LayoutproofError):
    """What `require` raises: something that was asked is not proved. `verdicts` are those, worst first."""

    def __init__(self, verdicts: Iterable[Verdict]) -> None:
        self.verdicts = tuple(sorted(verdicts, key=lambda verdict: _WORST_FIRST.index(verdict.status)))
        super().__init__(
            Diagnostic(each.code, f"{each.claim} {_WORDS[each.status]}: {counterexample_text(each)}")
            for each in self.verdicts
        )


class Report(Shown, ABC):
    """An answer to what was asked. It has no truth value, since an object that is there would always be true."""

    __slots__ = ()

    @property
    @abstractmethod
    def asked(self) -> tuple[Verdict, ...]:
        """The verdicts on what was asked."""

    @property
    def ok(self) -> bool:
        """Whether all that was asked is proved: neither refuted, nor unknown, nor vacuous."""
        return bool(self.asked) and all(verdict.status in GOOD for verdict in self.asked)

    def require(self) -> Self:
        """The report itself. Raises NotProved, with the counterexample, unless all that was asked is proved."""
        if not self.ok:
            raise NotProved(verdict for verdict in self.asked if verdict.status not in GOOD)
        return self

    def __bool__(self) -> bool:
        raise TypeError("a report has no truth value; ask for its `ok`, or call `require()`")

    def __repr__(self) -> str:
        # Short, and with the counterexample: it is what a failed `assert report.ok` shows.
        open_ones = [verdict for verdict in self.asked if verdict.status not in GOOD]
        if not open_ones:
            return f"<{type(self).__name__}: {'proved' if self.asked else 'nothing was asked'}>"
        first = min(open_ones, key=lambda verdict: _WORST_FIRST.index(verdict.status))
        why = counterexample_text(first) or ""
        if first.status is Status.UNKNOWN:
            why, *rest = why.split("\n")
            why = f"{why[:_LONGEST_REASON]}..." if rest or len(why) > _LONGEST_REASON else why
        return f"<{type(self).__name__}: {first.status}: {first.claim}: {why}>"
