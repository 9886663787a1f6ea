"""What code asks of a claim and of the reason of a verdict, as objects: the texts of both are for people, and nothing reads them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from layoutproof.verify import codes
from layoutproof.verify.spot import Place


class ClaimKind(StrEnum):
    """The kinds of claims; each has the code under which people look up, select and ignore what is refuted of it."""

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
    SIZES_FIT = "sizes-fit", codes.OVERFLOW  # of all index arithmetic at once; what is asked of calls for it is in the reason
    FITS = "fits", codes.OVERFLOW
    HAS_RESULT = "has-result", codes.NO_RESULT
    NO_RACE = "no-race", codes.RACE
    SAME_VALUE = "same-value", codes.OTHER_VALUE
    SAME_END = "same-end", codes.OTHER_END
    OWED_PADDING = "owed-padding", codes.PADDING_OWED
    RUNS = "runs", codes.VACUOUS
    OTHER = "other", codes.UNPROVED


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of some kind, in words for people: those of `head`, its place in the program in brackets, where it has one, and `tail`.
    `buffers` are the buffers and memories that it is about, as far as anybody asks.
    """

    kind: ClaimKind
    head: str
    place: Place | None = None
    tail: str = ""
    buffers: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The sentence."""
        return self.apart if self.place is None else f"{self.head} ({self.place}){self.tail}"

    @property
    def apart(self) -> str:
        """The sentence without its place."""
        return self.head + self.tail

    @property
    def steady(self) -> str:
        """The sentence without a line number, so that it stays the same where other lines of the file are edited."""
        return self.apart if self.place is not None and self.place.line is not None else self.text

    def __str__(self) -> str:
        return self.text
