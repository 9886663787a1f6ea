"""Reports, which are answers made of verdicts; verdicts as they are kept; and what `require` raises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Self

from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError
from layoutproof.ir.shown import Shown
from layoutproof.verify.program.location import Place
from layoutproof.verify.program.questions import Because
from layoutproof.verify.verdict.verdict import GOOD, Claim, ClaimKind, Status, Verdict

_LONGEST_REASON = 160  # characters of one that a report's short text has
_WORST_FIRST = (Status.REFUTED, Status.UNKNOWN, Status.VACUOUS, Status.PROVED)


def to_entry(verdict: Verdict) -> dict[str, Any]:
    """The verdict as it is kept and sent to other processes: `to_dict` with what code asks of it."""
    claim, place = verdict.claim, verdict.claim.place
    parts = [claim.head, None if place is None else [place.words, place.line, place.at], claim.tail]
    about = {
        "kind": claim.kind.value,
        "parts": parts,
        "buffers": list(claim.buffers),
        "about": list(claim.about),
    }
    known = {"because": sorted(verdict.because), "related": [list(each) for each in verdict.related]}
    return {**verdict.to_dict(), **about, **known, "rests_on": list(verdict.rests_on)}


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


PHRASES = {Status.REFUTED: "is refuted", Status.UNKNOWN: "is not decided", Status.VACUOUS: "is vacuous"}
"""What a message says of a claim that is not proved."""


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


def refusal_text(verdict: Verdict) -> str:
    """What a message says of a verdict that is not `proved`: the claim, what became of it, and why."""
    return f"{verdict.claim} {PHRASES[verdict.status]}: {counterexample_text(verdict)}"


class NotProved(LayoutproofError):
    """What `require` raises: something that was asked is not proved. `verdicts` are those, worst first."""

    def __init__(self, verdicts: Iterable[Verdict]) -> None:
        self.verdicts = tuple(sorted(verdicts, key=lambda verdict: _WORST_FIRST.index(verdict.status)))
        super().__init__(Diagnostic(each.code, refusal_text(each)) for each in self.verdicts)


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
