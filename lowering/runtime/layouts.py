"""How the arrays a user has become the arrays a kernel takes: index maps applied one after the other, padding filled per contract.

Each transform of a buffer has its own physical box and its own contract for the padding that it introduced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from layoutproof.ir.dtype import DType
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.intrinsics import Undef
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import free_variables
from layoutproof.lowering.runtime.arrays import Array, lane_shape, poison
from layoutproof.lowering.runtime.pad_values import pad_values
from layoutproof.lowering.runtime.symbols import extent_text


@dataclass(frozen=True, slots=True)
class Step:
    """One transform: the map, the physical shape it leads to, and what its padding holds.

    `pad` is an expression over `pad_inputs` (the physical indices), or None where padding may not be touched.
    """

    index_map: IndexMap
    physical_shape: tuple[Expr, ...]
    pad: Expr | None = None
    pad_inputs: tuple[str, ...] = ()

    @property
    def contract(self) -> str | None:
        """The contract as text: None, `undef`, or the value, as a lambda where it depends on the place."""
        if self.pad is None:
            return None
        if isinstance(self.pad, Undef):
            return "undef"
        text = expr_text(self.pad)
        depends = any(v.name in self.pad_inputs for v in free_variables(self.pad))
        return f"lambda {', '.join(self.pad_inputs)}: {text}" if depends else text

    @property
    def fills(self) -> bool:
        """Whether padding holds a known value."""
        return self.pad is not None and not isinstance(self.pad, Undef)


@dataclass(frozen=True, slots=True)
class Layout:
    """A buffer's logical shape and the transforms that lead to its physical one, in order; none where they are the same."""

    logical_shape: tuple[Expr, ...]
    steps: tuple[Step, ...] = ()


Positions = npt.NDArray[np.int64]


@dataclass(slots=True)
class Packer:
    """Re-lays arrays of one buffer; positions are kept for the shapes seen last."""

    layout: Layout
    dtype: DType
    _positions: dict[tuple[object, ...], list[Positions]] = field(default_factory=dict)

    def shapes(self, symbols: Mapping[str, int]) -> list[tuple[int, ...]]:
        """The logical shape, then the shape after each step."""
        found = [self.layout.logical_shape, *(step.physical_shape for step in self.layout.steps)]
        return [tuple(int(evaluate(extent, symbols)) for extent in shape) for shape in found]

    def _steps(self, symbols: Mapping[str, int]) -> list[Positions]:
        """For each step, the flat place of every element of the shape before it."""
        shapes = self.shapes(symbols)
        key = (*shapes, *sorted(symbols.items()))
        found = self._positions.get(key)
        if found is None:
            found = [
                np.ascontiguousarray(step.index_map.flat_positions(before, after, symbols)).reshape(-1)
                for step, before, after in zip(self.layout.steps, shapes, shapes[1:], strict=False)
            ]
            if len(self._positions) >= 4:
                self._positions.pop(next(iter(self._positions)))
            self._positions[key] = found
        return found

    def pack(self, logical: Array, symbols: Mapping[str, int]) -> Array:
        """A new physical array with the content of a logical one, padding filled as its contract says, or with poison."""
        current = logical
        for step, positions, shape in zip(self.layout.steps, self._steps(symbols), self.shapes(symbols)[1:], strict=True):
            elements = int(np.prod(shape, dtype=np.int64))
            lanes = self.dtype.lanes
            flat = np.full((elements, lanes), poison(self.dtype), dtype=logical.dtype)
            flat[positions] = current.reshape(-1, lanes)
            result = flat.reshape(lane_shape(shape, self.dtype))
            if step.fills and elements > positions.size:
                self._fill(step, flat, positions, shape, symbols)
            current = result
        return current

    def _fill(self, step: Step, flat: Array, positions: Positions, shape: tuple[int, ...], symbols: Mapping[str, int]) -> None:
        padding = np.ones(flat.shape[0], dtype=np.bool_)
        padding[positions] = False
        cells = np.flatnonzero(padding)
        assert step.pad is not None
        indices = dict(zip(step.pad_inputs, np.unravel_index(cells, shape), strict=True)) if step.pad_inputs else {}
        flat[cells] = pad_values(step.pad, {**symbols, **indices}, flat, shape, cells.size)

    def unpack(self, physical: Array, symbols: Mapping[str, int]) -> Array:
        """A new logical array with the content of a physical one; padding is dropped."""
        lanes = self.dtype.lanes
        shapes = self.shapes(symbols)
        current = physical
        for positions, shape in zip(reversed(self._steps(symbols)), reversed(shapes[:-1]), strict=True):
            current = current.reshape(-1, lanes)[positions].reshape(lane_shape(shape, self.dtype))
        return current


def layout_notes(layouts: Mapping[str, Layout]) -> dict[str, str]:
    """A remark for each re-laid buffer: its logical shape and the maps that lead to the physical one."""
    return {name: _note(layout) for name, layout in layouts.items() if layout.steps}


def _note(layout: Layout) -> str:
    shape = ", ".join(extent_text(extent) for extent in layout.logical_shape)
    maps = ", then ".join(index_map_text(step.index_map) for step in layout.steps)
    return f"logical [{shape}] by {maps}"
