"""What each cell of a stored buffer holds, as plain data for a picture that a browser draws.

A cell's number is its logical index, row-major; -1 is padding of the layout's first step, -2 of the second, and so on;
a list of numbers means a collision. Small boxes are complete; large ones have the cells at the ends of the axes, where
padding begins. Symbolic shapes are shown at a small size, and the picture says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import cycle
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutproof.cli.plot.layout_cells import Picture, lay_out
from layoutproof.ir.buffer import axis_groups
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.interp.layout_cells import extents_for
from layoutproof.ir.layout_record import LayoutStep
from layoutproof.ir.semantics import Trap
from layoutproof.ir.visit import free_variables

WHOLE = 4_096
"""The largest box that is told whole."""
_SHOWN = 512  # cells of a larger one
_LONGEST = 64  # indices shown of one axis
_COUNTED = 1 << 20  # cells that are gone through to count padding, and to find what each holds
_MEETING = 8  # indices that are named where several meet
_RGBA = 4

# Sizes for symbols: odd ones first, since they show padding; then others that a condition may ask for.
_SIZES = (
    (7, 5, 6, 3),
    (5, 7),
    (9, 6),
    (8, 4),
    (16, 8),
    (12, 10),
    (4,),
    (6,),
    (3,),
    (2,),
    (1,),
    (32, 16),
    (64,),
    (10, 20),
    (15, 30),
)


@dataclass(frozen=True, slots=True)
class Stored:
    """A layout: a logical box and its steps. Extents and maps are over `symbols`, under the precondition `where`."""

    logical_shape: tuple[Expr, ...]
    steps: tuple[LayoutStep, ...]
    separators: tuple[int, ...] = ()
    symbols: tuple[Var, ...] = ()
    where: Expr | None = None

    @property
    def shape(self) -> tuple[Expr, ...]:
        """The box of the last step."""
        return self.steps[-1].shape if self.steps else self.logical_shape

    def maps(self) -> tuple[IndexMap, ...]:
        """The map of each step."""
        return tuple(step.index_map for step in self.steps)


@lru_cache(maxsize=512)
def picture_data(stored: Stored) -> dict[str, Any] | None:
    """The picture as JSON, not to be changed; None if no size of the box can be shown."""
    for sizes in _samples(stored):
        try:
            logical, boxes = _extents(stored, sizes)
            if min((*logical, *boxes[-1]), default=1) < 1 or (sizes and prod(boxes[-1]) > 1 << 16):
                continue
            return _picture(stored, sizes, logical, boxes)
        except (LayoutproofError, Trap, OverflowError, ValueError):
            continue
    return None


def _samples(stored: Stored) -> Iterator[dict[str, int]]:
    """Sizes of the symbols that satisfy the precondition."""
    names = [v.name for v in stored.symbols]
    if not names:
        yield {}
        return
    for numbers in _SIZES:
        sizes = dict(zip(names, cycle(numbers), strict=False))
        if stored.where is None or _holds(stored.where, sizes):
            yield sizes


def _holds(condition: Expr, sizes: Mapping[str, int]) -> bool:
    if any(v.name not in sizes for v in free_variables(condition)):
        return False
    try:
        return bool(evaluate(condition, sizes))
    except (Trap, OverflowError):
        return False


def _extents(stored: Stored, sizes: Mapping[str, int]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The logical box, and the box after each step."""
    logical = extents_for(stored.logical_shape, sizes)
    boxes = [extents_for(step.shape, sizes) for step in stored.steps]
    return logical, boxes if boxes else [logical]


def _picture(
    stored: Stored, sizes: dict[str, int], logical: tuple[int, ...], boxes: list[tuple[int, ...]]
) -> dict[str, Any] | None:
    box = boxes[-1]
    total = prod(box)
    if not box:
        return None
    picture = lay_out(box, stored.separators, WHOLE if total <= WHOLE else _SHOWN, longest=_LONGEST)
    maps = stored.maps()
    padding: int | None = None
    if total <= _COUNTED and prod(logical) <= _COUNTED and all(prod(b) <= _COUNTED for b in boxes):
        owners, meeting = _owners(maps, sizes, logical, boxes)
        flat = owners.reshape(-1)
        padding = int(np.count_nonzero(flat < 0))
        cells = [meeting.get(place.offset, int(flat[place.offset])) for place in picture.places]
    else:
        back = _backwards(maps, sizes, logical, boxes)
        if back is None:
            return None
        cells = [back.owner(place.index) for place in picture.places]
    names = [v.name for v in maps[0].inputs] if maps else [f"i{axis}" for axis in range(len(logical))]
    return {
        "sizes": sizes,
        "logical": list(logical),
        "names": names,
        "box": list(box),
        "levels": _levels(picture),
        "width": round(picture.width, 3),
        "height": round(picture.height, 3),
        "cells": cells,
        "total": total,
        "padding": padding,
        "groups": [list(group) for group in axis_groups(len(box), stored.separators)],
        "channels": _channels(box, stored.separators),
    }


def _levels(picture: Picture) -> list[dict[str, Any]]:
    """The axes in order, each with the indices shown and their positions, in widths of a cell."""
    ordered = sorted(picture.levels, key=lambda level: level.axis)
    return [
        {
            "right": level.horizontal,
            "shown": list(level.shown),
            "starts": [round(s, 3) for s in level.starts],
            "extent": level.extent,
        }
        for level in ordered
    ]


def _channels(box: Sequence[int], separators: tuple[int, ...]) -> int | None:
    """The channels of a texel for an image or an array of images; None otherwise."""
    if len(separators) not in (1, 2):
        return None
    return _RGBA if prod(box[axis] for axis in axis_groups(len(box), separators)[-1]) % _RGBA == 0 else 1


def _owners(
    maps: Sequence[IndexMap], sizes: Mapping[str, int], logical: tuple[int, ...], boxes: Sequence[tuple[int, ...]]
) -> tuple[NDArray[np.int64], dict[int, list[int]]]:
    """The number of every cell, and the cells with several indices. Raises LayoutproofError for an undefined map."""
    cells = np.arange(prod(logical), dtype=np.int64).reshape(logical)
    meeting: dict[int, list[int]] = {}
    for number, index_map in enumerate(maps):
        positions = index_map.flat_positions(cells.shape, boxes[number], sizes).reshape(-1)
        size = prod(boxes[number])
        if positions.size and not 0 <= int(positions.min()) <= int(positions.max()) < size:
            raise ValueError("the map leaves its box")
        held = cells.reshape(-1)
        counts = np.bincount(positions, minlength=size)
        if int(counts.max(initial=0)) > 1:
            meeting = _meetings(positions, held, counts)
        moved = np.full(size, -(number + 1), dtype=np.int64)
        moved[positions] = held
        cells = moved.reshape(boxes[number])
    return cells, meeting


def _meetings(positions: NDArray[np.int64], held: NDArray[np.int64], counts: NDArray[np.int64]) -> dict[int, list[int]]:
    """By cell with several indices: the first of them."""
    crowded = np.flatnonzero(counts[positions] > 1)
    found: dict[int, list[int]] = {}
    for place, owner in zip(positions[crowded].tolist(), held[crowded].tolist(), strict=True):
        here = found.setdefault(place, [])
        if owner >= 0 and len(here) < _MEETING:
            here.append(owner)
    return {place: here for place, here in found.items() if len(here) > 1}


@dataclass(frozen=True, slots=True)
class _Backwards:
    """The inverses and padding conditions of all steps, which give a large box's cell its index."""

    inverses: tuple[IndexMap, ...]
    padding: tuple[Expr, ...]
    logical: tuple[int, ...]

    def owner(self, cell: tuple[int, ...]) -> int:
        """The cell's number."""
        for number in reversed(range(len(self.inverses))):
            if evaluate(self.padding[number], {f"p{axis}": value for axis, value in enumerate(cell)}):
                return -(number + 1)
            cell = self.inverses[number].evaluate(cell)
        flat = 0
        for position, extent in zip(cell, self.logical, strict=True):
            flat = flat * extent + position
        return flat


def _backwards(
    maps: Sequence[IndexMap],
    sizes: Mapping[str, int],
    logical: tuple[int, ...],
    boxes: Sequence[tuple[int, ...]],
) -> _Backwards | None:
    """None if an inverse is not found, and for symbolic shapes, which are never large."""
    from layoutproof.verify.maps.check_map import check_map

    inverses: list[IndexMap] = []
    padding: list[Expr] = []
    shape = logical
    for index_map, box in zip(maps, boxes, strict=False):
        report = check_map(index_map, shape, physical_shape=box)
        if sizes or report.inverse is None or report.padding.predicate is None:
            return None
        inverses.append(report.inverse)
        padding.append(report.padding.predicate)
        shape = box
    return _Backwards(tuple(inverses), tuple(padding), logical)
