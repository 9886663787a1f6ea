"""What a trial is made on, and what may come of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from layoutproof.ir.interp import Fault
from layoutproof.ir.interp.arguments import Array

Number = int | float


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One input: numbers by name (symbols and scalar parameters), arrays in logical layout by buffer.

    `other_padding`: the padding of parameters that are written holds something else than its contract before the call.
    """

    numbers: Mapping[str, Number]
    arrays: Mapping[str, Array]
    other_padding: bool = False


@dataclass(frozen=True, slots=True)
class Difference:
    """One scalar that ends with another value: its buffer, logical index (None in padding), index in either program's array (None where
    the old one has no such cell) and lane; what the old program leaves there (or what the padding owes), and what the new one does."""

    buffer: str
    logical: tuple[int, ...] | None
    old_index: tuple[int, ...] | None
    new_index: tuple[int, ...]
    lane: int
    old: Any
    new: Any
    owed: str | None = None


@dataclass(frozen=True, slots=True)
class LookedAt:
    """A cell of a parameter, by its index in either program's array; None in the old one's for padding that only the new one has."""

    buffer: str
    old_index: tuple[int, ...] | None
    new_index: tuple[int, ...] | None

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        at = (list(index) if index is not None else None for index in (self.old_index, self.new_index))
        return {"buffer": self.buffer, **dict(zip(("before_index", "after_index"), at, strict=True))}


@dataclass(frozen=True, slots=True)
class Failure:
    """What the new program does wrong on a sample: a fault, or a difference."""

    sample: Sample
    fault: Fault | None = None
    difference: Difference | None = None

    @property
    def kind(self) -> str:
        """Failures of one kind are minimised into each other."""
        return self.fault.kind.value if self.fault is not None else "difference"


@dataclass(frozen=True, slots=True)
class Verdictless:
    """A trial that says nothing, and why."""

    reason: str


Outcome = Failure | Verdictless | None  # None: both do the same
