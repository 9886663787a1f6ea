"""Which cells of a large output are compared: some at random, and those beside padding, where mistakes show first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutproof.ir.evaluate import evaluate
from layoutproof.lowering.runtime.kernel import Kernel

RANDOM_CELLS = 1_000
BESIDE_PADDING = 1_000
Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Logical indices in order; how many of those beside padding are among them, and how many there are."""

    cells: tuple[tuple[int, ...], ...]
    beside_padding: int
    all_beside_padding: int


def choose_cells(shape: tuple[int, ...], kernel: Kernel, name: str, sizes: Mapping[str, int], seed: int) -> Chosen:
    """1,000 random cells, the first and the last, and those beside padding in the physical layout: all of them, or 1,000 evenly spread."""
    if prod(shape) == 0:
        return Chosen((), 0, 0)
    generator = np.random.default_rng(seed + 1)
    cells = {tuple(int(generator.integers(extent)) for extent in shape) for _ in range(RANDOM_CELLS)}
    edge = padding_edge(kernel, name, shape, sizes)
    taken = edge[np.linspace(0, len(edge) - 1, min(len(edge), BESIDE_PADDING), dtype=np.int64)]
    cells.update(tuple(int(i) for i in index) for index in taken)
    cells.update({tuple(0 for _ in shape), tuple(extent - 1 for extent in shape)})
    return Chosen(tuple(sorted(cells)), len(taken), len(edge))


def padding_edge(kernel: Kernel, name: str, shape: Sequence[int], sizes: Mapping[str, int]) -> Array:
    """The logical indices, one a row, of a buffer's cells that have a padding cell next to them along some physical axis."""
    info = kernel.buffers[name]
    if info.index_map is None:
        return np.zeros((0, len(shape)), dtype=np.int64)
    # Not the parameter's own shape: it may have been flattened since, and neighbours are told in the box.
    box = tuple(int(evaluate(extent, sizes)) for extent in info.steps[-1].physical_shape)
    positions = info.index_map.flat_positions(shape, box, sizes)
    held = np.zeros(prod(box), dtype=bool)
    held[positions.reshape(-1)] = True
    held = held.reshape(tuple(box))
    beside = np.zeros_like(held)
    for axis in range(held.ndim):
        ahead, behind = [slice(None)] * held.ndim, [slice(None)] * held.ndim
        ahead[axis], behind[axis] = slice(1, None), slice(None, -1)
        beside[tuple(behind)] |= ~held[tuple(ahead)]
        beside[tuple(ahead)] |= ~held[tuple(behind)]
    return np.argwhere(beside.reshape(-1)[positions])
