"""Which elements of what a large program writes are looked at: those at which wrong programs tend to be wrong.

Where a proof got stuck, edges of conditions, corners, neighbours of padding, one in each block of the layout, neighbours of every
constant that a program mentions, and some at random.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from layoutproof.ir.expr import IntImm
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.visit import walk
from layoutproof.verify.replay.edges import edge_cells
from layoutproof.verify.replay.inputs import SEED
from layoutproof.verify.replay.placement import Place, Positions
from layoutproof.verify.suspect import Suspect

_SUSPECTS, _EDGES, _AT_CORNERS, _BESIDE, _SPACED, _BESIDE_CONSTANTS, _AT_RANDOM = 24, 48, 16, 8, 17, 24, 8
_AXES = 5  # axes of which every corner is a candidate
_CONSTANTS = 24


@dataclass(frozen=True, slots=True)
class Chosen:
    """Elements of the old program's array, and cells of the new one's that are padding with a value for a contract; likely ones first."""

    elements: Positions
    padding: Positions

    def first(self, count: int) -> Chosen:
        """The likeliest ones, at most so many of each kind."""
        return Chosen(self.elements[:count], self.padding[:count])

    def only(self, element: int | None, padding: int | None) -> Chosen:
        """One of them."""
        one, other = ([] if number is None else [number] for number in (element, padding))
        return Chosen(np.array(one, dtype=np.int64), np.array(other, dtype=np.int64))


@dataclass(slots=True)
class Chooser:
    """Chooses elements of the parameters of one rewrite, always the same ones."""

    rewrite: Rewrite
    symbols: Mapping[str, int]
    suspects: Sequence[Suspect]

    def chosen(self, place: Place, position: int) -> Chosen:
        """Of the parameter at a position among the buffers."""
        generator = np.random.default_rng(SEED)
        old, new = self.rewrite.old.buffers[position], self.rewrite.new.buffers[position]
        back = np.full(prod(place.new_shape), -1, dtype=np.int64)
        back[place.new_places] = np.arange(prod(place.old_shape), dtype=np.int64)
        suspects = self.suspected(place, old.data.name, new.data.name)
        edges = edge_cells(self.rewrite.new, new, self.symbols, generator)[:_EDGES]
        here = edge_cells(self.rewrite.old, old, self.symbols, generator)[:_EDGES]
        more = [np.array(list(group), dtype=np.int64) for group in self.elsewhere(place, generator)]
        in_new = _in_turn([edges, *more])
        padding = _first_ones(np.concatenate([suspects[1], in_new, _edge_of_padding(place)[1]]), place.owed_padding())
        known = back[np.concatenate([suspects[1], _edge_of_padding(place)[0]])]
        elements = np.concatenate([suspects[0], known[known >= 0], _in_turn([back[in_new][back[in_new] >= 0], here])])
        return Chosen(_first_ones(elements, place.observed), padding)

    def suspected(self, place: Place, old: str, new: str) -> tuple[Positions, Positions]:
        """The cells of this parameter that somebody suspects, in the old array and in the new one."""
        found: list[list[int]] = []
        for is_new, name, shape in ((False, old, place.old_shape), (True, new, place.new_shape)):
            mine = [s.index for s in self.suspects if s.is_new is is_new and s.data == name and len(s.index) == len(shape)]
            inside = [i for i in mine if all(0 <= c < e for c, e in zip(i, shape, strict=True))][:_SUSPECTS]
            found.append([int(np.ravel_multi_index(i, shape)) if shape else 0 for i in inside])
        return np.array(found[0], dtype=np.int64), np.array(found[1], dtype=np.int64)

    def elsewhere(self, place: Place, generator: np.random.Generator) -> Iterator[Sequence[int]]:
        """Groups of cells of the new array that the programs' conditions do not show."""
        shape, count = place.new_shape, prod(place.new_shape)
        corners = [_flat(c, shape) for c in product(*([0, e - 1] if k < _AXES else [0] for k, e in enumerate(shape)))]
        yield [corners[0], corners[-1], *(corners[int(k)] for k in generator.permutation(len(corners))[:_AT_CORNERS])]
        yield np.linspace(0, count - 1, min(count, _SPACED), dtype=np.int64).tolist()
        places = place.new_places
        beside = []
        for _ in range(_BESIDE_CONSTANTS):
            at = [int(generator.integers(extent)) for extent in place.old_shape]
            axis = int(generator.integers(max(len(at), 1)))
            near = [c for c in self.constants() if at and 0 <= c < place.old_shape[axis]]
            if near:
                at[axis] = near[int(generator.integers(len(near)))]
                beside.append(int(places[_flat(at, place.old_shape)]))
        yield beside
        yield generator.integers(0, count, _AT_RANDOM).tolist()

    def constants(self) -> list[int]:
        """The whole numbers that the programs mention, and their neighbours."""
        found = sorted({node.value for func in (self.rewrite.old, self.rewrite.new) for node in _numbers(func)})
        return [value + step for value in found[:_CONSTANTS] for step in (-1, 0, 1)]


def _numbers(func: PrimFunc) -> Iterator[IntImm]:
    return (node for node in walk(func.body) if isinstance(node, IntImm) and node.value > 1)


def _flat(index: Sequence[int], shape: Sequence[int]) -> int:
    return int(np.ravel_multi_index(tuple(index), tuple(shape))) if shape else 0


def _in_turn(groups: Sequence[Positions]) -> Positions:
    """One of each group, then another of each."""
    longest = max((group.size for group in groups), default=0)
    return np.concatenate([np.zeros(0, dtype=np.int64), *(group[k : k + 1] for k in range(longest) for group in groups)])


def _first_ones(positions: Positions, wanted: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Positions:
    """The positions that are wanted, each once, in their order."""
    _, first = np.unique(positions, return_index=True)
    ordered = positions[np.sort(first)]
    return ordered[wanted[ordered]]


def _edge_of_padding(place: Place) -> tuple[Positions, Positions]:
    """Cells of the new array next to padding, and padding next to them, from one end to the other."""
    padding = place.new_padding()
    if not padding.any():
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    change = np.flatnonzero(padding[1:] != padding[:-1])
    picked = change[np.linspace(0, change.size - 1, min(change.size, _BESIDE), dtype=np.int64)]
    both = np.concatenate([picked, picked + 1])
    ends = np.flatnonzero(padding)[[0, -1]]
    return both[~padding[both]], np.concatenate([both[padding[both]], ends])
