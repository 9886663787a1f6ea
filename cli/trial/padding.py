"""Whether a kernel leaves the padding of its outputs as the contract says: owed values written, cells without a contract untouched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutproof.cli.trial.made_up import physical_shapes
from layoutproof.ir.dtype import DType
from layoutproof.ir.interp.run import ulps_apart
from layoutproof.ir.layout_record import Cell, padding_cells
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.runtime.array_layouts import Packer, runtime_layouts
from layoutproof.lowering.runtime.kernel import Kernel

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class PaddingTrial:
    """The padding of one output after a run: cells that owe a value, cells nobody may touch, how many are wrong, the first of them
    (physical index, what it holds, what it should)."""

    buffer: str
    owed: int
    untouchable: int
    wrong: int
    first: tuple[tuple[int, ...], Any, Any] | None


def compare_padding(func: PrimFunc, kernel: Kernel, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> tuple[PaddingTrial, ...]:
    """Run `kernel`, built from the scheduled `func`, on physical arrays, and look at the padding of its outputs afterwards.

    `arrays` are logical, by parameter. The padding of an output holds something wrong beforehand, so that a value that is there
    afterwards was written.
    """
    layouts = runtime_layouts(func)
    cells = padding_cells(func, sizes)
    parameters = {p.name: p for p in kernel.source.parameters if p.buffer is not None}
    outputs = [name for name, p in parameters.items() if p.writes and name in layouts]
    if not outputs:
        return ()
    packers = {name: Packer(layouts[name], parameters[name].dtype) for name in parameters if name in layouts}
    shapes = physical_shapes(func, sizes)
    physical = {n: packers[n].pack(a, sizes).reshape(shapes[n]) if n in packers else a.copy() for n, a in arrays.items()}
    before: dict[str, Array] = {}
    kinds: dict[str, Array] = {}
    for name in outputs:
        buffer, lanes = parameters[name].buffer, parameters[name].dtype.lanes
        assert buffer is not None
        kinds[name] = np.repeat(cells[buffer.data.name].reshape(-1), lanes)
        if not parameters[name].needs_content:
            flat = physical[name].reshape(-1)
            spoilt = np.isin(kinds[name], (Cell.PAD_VALUE, Cell.PAD_FORBIDDEN))
            flat[spoilt] = _spoilt(flat, parameters[name].dtype)[spoilt]
        before[name] = physical[name].copy()
    kernel.raw(**physical, **scalars_of(kernel, sizes))
    found = []
    for name in outputs:
        promised = packers[name].pack(packers[name].unpack(physical[name], sizes), sizes)
        found.append(_compare(name, kinds[name], physical[name], before[name], promised))
    return tuple(found)


def scalars_of(kernel: Kernel, sizes: Mapping[str, int]) -> dict[str, int]:
    """Those of the sizes that are arguments of the kernel."""
    return {p.name: sizes[p.name] for p in kernel.source.parameters if p.buffer is None and p.name in sizes}


def _spoilt(flat: Array, dtype: DType) -> Array:
    """For each cell something else than what the contract promises (which is what the array holds after packing)."""
    if dtype.is_bool:
        return ~flat
    return (flat.view(np.uint8) ^ np.uint8(0x25)).view(flat.dtype)


def _compare(name: str, kinds: Array, found: Array, before: Array, promised: Array) -> PaddingTrial:
    owed, untouchable = kinds == Cell.PAD_VALUE, kinds == Cell.PAD_FORBIDDEN
    flat = found.reshape(-1)
    wanted = np.where(untouchable, before.reshape(-1), promised.reshape(-1))
    wrong = np.flatnonzero((owed | untouchable) & (ulps_apart(flat, wanted) != 0))
    first = None
    if wrong.size:
        place = int(wrong[0])
        first = tuple(int(i) for i in np.unravel_index(place, found.shape)), flat[place], wanted[place]
    return PaddingTrial(name, int(owed.sum()), int(untouchable.sum()), int(wrong.size), first)
