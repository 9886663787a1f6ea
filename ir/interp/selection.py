"""Which iterations and which units (blocks, or stores outside blocks) a partial run executes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from layoutproof.ir.interp.facts import Place


@dataclass(frozen=True, slots=True)
class LoopChoice:
    """The values that a loop takes, sorted, by the values of the loops named in `keys` (outer loops, in order)."""

    keys: tuple[str, ...]
    values: Mapping[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class UnitChoice:
    """The values of the loops named in `keys` for which a unit is executed."""

    keys: tuple[str, ...]
    points: frozenset[tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Selection:
    """What runs. A loop that is not named runs in full; so does a unit that is not named.

    `controls` are statements whose condition, bounds or value reads memory: they run where any of their choices has them.
    """

    loops: Mapping[Place, LoopChoice] = field(default_factory=dict)
    units: Mapping[Place, UnitChoice] = field(default_factory=dict)
    controls: Mapping[Place, tuple[UnitChoice, ...]] = field(default_factory=dict)

    def choices(self, place: Place) -> tuple[UnitChoice, ...] | None:
        """The choices of which one must have the statement at a place; None where it runs always."""
        unit = self.units.get(place)
        return (unit,) if unit is not None else self.controls.get(place)
