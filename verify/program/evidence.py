"""Answers of engines, recorded while something is proved so that certificates can have other solvers confirm them.

A caller who wants evidence passes `Gathered`; otherwise nothing is recorded. An answer "there is none" becomes a piece
of evidence for the next verdict; one that several verdicts use is with the first. `verify.smt.smtlib` makes the texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from layoutproof.ir.expr import Expr, Var

if TYPE_CHECKING:
    from layoutproof.verify.program.instances import IterationDomain
    from layoutproof.verify.program.questions import Cover

Bounds = Mapping[str, tuple[int | None, int | None]]
# A cover by number, and the values of its further dims as expressions over an instance that it reaches.
Witness = tuple[int, Mapping[str, Expr]]


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """The assumptions of an engine on symbols: conditions, and bounds by name."""

    assumed: tuple[Expr, ...] = ()
    bounds: tuple[tuple[str, int | None, int | None], ...] = ()

    @staticmethod
    def of(assumed: Sequence[Expr], bounds: Mapping[Var, tuple[int | None, int | None]]) -> Setting:
        """The setting as engines are given it."""
        return Setting(tuple(assumed), tuple((v.name, low, high) for v, (low, high) in bounds.items()))


@dataclass(frozen=True, slots=True, eq=False)
class NoInstance:
    """No instance of `domain` satisfies all conditions of one of `either`."""

    setting: Setting
    domain: IterationDomain
    either: tuple[tuple[Expr, ...], ...]
    engine: str


@dataclass(frozen=True, slots=True, eq=False)
class Covered:
    """Some cover reaches each instance of `domain` where the conditions hold; `witnesses` has which, and how.

    `witnesses` is called late, since it takes work; it raises Unstated where there is no answer.
    """

    setting: Setting
    domain: IterationDomain
    conditions: tuple[Expr, ...]
    covers: tuple[Cover, ...]
    witnesses: Callable[[], Sequence[Witness]]
    engine: str


@dataclass(frozen=True, slots=True, eq=False)
class OneToOne:
    """No two points of the box `0 <= inputs < extents` have the same `outputs`, where the symbols satisfy `where`."""

    inputs: tuple[Var, ...]
    extents: tuple[Expr, ...]
    outputs: tuple[Expr, ...]
    where: Expr
    engine: str


@dataclass(frozen=True, slots=True, eq=False)
class Digits:
    """`index` is the number that `digits` write in the radices `radices`, whose product is `extent`."""

    index: Expr
    digits: tuple[Expr, ...]
    radices: tuple[Expr, ...]
    extent: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Unwritten:
    """An answer that no text was found for, and why: certificates list it by name."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Several:
    """An answer that becomes several claims: `make`, which takes work, is called late, and raises Unstated."""

    what: str
    make: Callable[[], Sequence[Evidence]]


Evidence: TypeAlias = "NoInstance | Covered | OneToOne | Digits | Several | Unwritten"


class Unstated(Exception):
    """Evidence for which no expression was found."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Gathered:
    """The evidence since the last verdict."""

    is_recording = True

    def __init__(self) -> None:
        self._pieces: list[Evidence] = []

    def record(self, piece: Evidence) -> None:
        """Keep a piece of evidence for the next verdict."""
        self._pieces.append(piece)

    def taken(self) -> tuple[Evidence, ...]:
        """The evidence since the last verdict; each piece is given once."""
        found = tuple(self._pieces)
        self._pieces.clear()
        return found


class _Unrecorded(Gathered):
    is_recording = False

    def record(self, piece: Evidence) -> None:
        pass


UNRECORDED: Gathered = _Unrecorded()
"""Records nothing, where no evidence is asked for."""
