"""The contents of a picture of a layout, without drawing, so that it can be tested: the physical box as cells on a
plane.

Axes of one group nest: the last runs one way, the one before it the other way, and so on outwards, a grid of grids.
With one axis group the last axis runs to the right; with two, the first group runs down and the second to the right,
like an image in memory; with three, the first group stacks images to the right. Long axes are elided in their middle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import isqrt, prod

from layoutproof.ir.buffer import axis_groups

MAX_CELLS = 256
_MAX_SHOWN = 16
_MAX_ACROSS = 24  # cells in a row or a column: more would be too small to read on a slide
_GAP = 0.35
_ELISION = 0.9


@dataclass(frozen=True, slots=True)
class Level:
    """A physical axis as drawn: its direction, the indices shown, and their positions in cell widths."""

    axis: int
    extent: int
    horizontal: bool
    shown: tuple[int, ...]
    starts: tuple[float, ...]
    step: float

    @property
    def elided(self) -> bool:
        """Whether some indices are left out."""
        return len(self.shown) < self.extent

    @property
    def length(self) -> float:
        """From the first shown index's beginning to the last one's end."""
        return self.starts[-1] + self.step


@dataclass(frozen=True, slots=True)
class Place:
    """A shown cell: its physical index, its row-major offset in the whole box, its corner on the plane (x right, y
    down).
    """

    index: tuple[int, ...]
    offset: int
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Picture:
    """The plane: the cells shown and the levels that place them, innermost first."""

    shape: tuple[int, ...]
    levels: tuple[Level, ...]
    places: tuple[Place, ...]
    width: float
    height: float

    @property
    def complete(self) -> bool:
        """Whether every cell of the box is shown."""
        return not any(level.elided for level in self.levels)


def lay_out(
    shape: Sequence[int], separators: tuple[int, ...] = (), max_cells: int = MAX_CELLS, longest: int = _MAX_SHOWN
) -> Picture:
    """Place the cells of a physical box of extents `shape` (each at least 1), showing at most about `max_cells` of
    them, and at most `longest` indices of an axis.
    """
    directions = _directions(len(shape), separators)
    shown = _shown(shape, directions, max_cells, longest)
    size = {True: 1.0, False: 1.0}
    depth = {True: 0, False: 0}
    levels: list[Level] = []
    for axis in reversed(range(len(shape))):
        horizontal, extent = directions[axis], shape[axis]
        step = size[horizontal]
        gap = _GAP * depth[horizontal] if depth[horizontal] else 0.0
        starts = _starts(shown[axis], step, gap)
        level = Level(axis, extent, horizontal, shown[axis], starts, step)
        levels.append(level)
        if extent > 1:
            size[horizontal] = level.length
            depth[horizontal] += 1
    places = tuple(_place(index, shape, levels) for index in product(*shown))
    return Picture(tuple(shape), tuple(levels), places, size[True], size[False])


def _directions(rank: int, separators: tuple[int, ...]) -> dict[int, bool]:
    """Which axes run to the right."""
    groups = axis_groups(rank, separators)
    if len(groups) == 2:
        return {axis: number == 1 for number, group in enumerate(groups) for axis in group}
    if len(groups) == 3:
        return {axis: number != 1 for number, group in enumerate(groups) for axis in group}
    return {axis: (rank - 1 - axis) % 2 == 0 for axis in range(rank)}


def _shown(shape: Sequence[int], directions: Mapping[int, bool], max_cells: int, longest: int) -> list[tuple[int, ...]]:
    """The indices shown of each axis: all, or some from the beginning and the end; at least two of each while that
    fits.
    """
    counts = [min(extent, longest) for extent in shape]
    across = max(_MAX_ACROSS, isqrt(max_cells) * 3 // 2)
    for horizontal in (True, False):
        _shorten(counts, [axis for axis in range(len(shape)) if directions[axis] is horizontal], across)
    _shorten(counts, range(len(shape)), max_cells)
    return [_ends(extent, count) for extent, count in zip(shape, counts, strict=True)]


def _shorten(counts: list[int], axes: Sequence[int], most: int) -> None:
    """Show fewer indices of `axes` until at most `most` combinations are left."""
    while prod(counts[axis] for axis in axes) > most:
        # Inner axes keep more than outer ones: an axis is shortened as if it were two longer for each axis inside it.
        long = [axis for axis in axes if counts[axis] > 2] or [axis for axis in axes if counts[axis] > 1]
        axis = max(long, key=lambda a: (counts[a] - 2 * a, -a))
        counts[axis] -= 1


def _ends(extent: int, count: int) -> tuple[int, ...]:
    """`count` indices of `extent`: the first and, since padding is mostly there, the last ones."""
    if count >= extent:
        return tuple(range(extent))
    tail = count // 2
    return (*range(count - tail), *range(extent - tail, extent))


def _starts(shown: tuple[int, ...], step: float, gap: float) -> tuple[float, ...]:
    position, starts = 0.0, []
    for number, index in enumerate(shown):
        if number:
            position += step + gap + (_ELISION if index != shown[number - 1] + 1 else 0.0)
        starts.append(position)
    return tuple(starts)


def _place(index: tuple[int, ...], shape: Sequence[int], levels: Sequence[Level]) -> Place:
    offset = 0
    for position, extent in zip(index, shape, strict=True):
        offset = offset * extent + position
    x = sum(level.starts[level.shown.index(index[level.axis])] for level in levels if level.horizontal)
    y = sum(level.starts[level.shown.index(index[level.axis])] for level in levels if not level.horizontal)
    return Place(index, offset, x, y)
