"""A kernel run on random inputs and compared with the reference interpreter, bit for bit, and its padding with the
contract. With fast arithmetic or a device's own functions, results may differ within the program's enclosure.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutproof.cli.random_inputs import (
    Chosen,
    choose_cells,
    logical_shapes,
    physical_shapes,
    random_arrays,
    scalar_values,
)
from layoutproof.ir.dtype import DType
from layoutproof.ir.interp import count_instances, run, run_slice
from layoutproof.ir.interp.layout_cells import padding_cells
from layoutproof.ir.interp.memory import DEFINED
from layoutproof.ir.interp.run import DEFAULT_LIMIT, ulps_apart
from layoutproof.ir.layout_record import Cell
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.visit import stores_in
from layoutproof.lowering.runtime.array_layouts import Layout, Packer, runtime_layouts
from layoutproof.lowering.runtime.enclosure import Enclosed, NoEnclosureError, outside
from layoutproof.lowering.runtime.kernel import Kernel
from layoutproof.verify.faults.satisfying_data import assumption_program, repair_program, repaired


@dataclass(frozen=True, slots=True)
class PaddingTrial:
    """The padding of one output after a run: cells with a required value, cells that must stay untouched, the number of
    wrong ones, and the first of them (physical index, found, expected).
    """

    buffer: str
    required: int
    untouchable: int
    wrong: int
    first: tuple[tuple[int, ...], Any, Any] | None


def compare_padding(
    func: PrimFunc, kernel: Kernel, arrays: Mapping[str, Array], sizes: Mapping[str, int]
) -> tuple[PaddingTrial, ...]:
    """Run `kernel`, built from the scheduled `func`, on physical arrays, and check the padding of its outputs.

    `arrays` are logical, by parameter. The padding of an output starts with wrong values, so that right ones were
    written.
    """
    layouts = runtime_layouts(func)
    cells = padding_cells(func, sizes)
    parameters = {p.name: p for p in kernel.source.parameters if p.buffer is not None}
    outputs = [name for name, p in parameters.items() if p.writes and name in layouts]
    if not outputs:
        return ()
    packers = {name: Packer(layouts[name], parameters[name].dtype) for name in parameters if name in layouts}
    shapes = physical_shapes(func, sizes)
    physical = {
        n: packers[n].pack(a, sizes).reshape(shapes[n]) if n in packers else a.copy() for n, a in arrays.items()
    }
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
        found.append(_compare_of_padding(name, kinds[name], physical[name], before[name], promised))
    return tuple(found)


def scalars_of(kernel: Kernel, sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes that are arguments of the kernel."""
    return {p.name: sizes[p.name] for p in kernel.source.parameters if p.buffer is None and p.name in sizes}


def _spoilt(flat: Array, dtype: DType) -> Array:
    """For each cell a value that violates the contract (the array holds what the contract promises)."""
    if dtype.is_bool:
        return ~flat
    return (flat.view(np.uint8) ^ np.uint8(0x25)).view(flat.dtype)


def _compare_of_padding(name: str, kinds: Array, found: Array, before: Array, promised: Array) -> PaddingTrial:
    required, untouchable = kinds == Cell.PAD_VALUE, kinds == Cell.PAD_FORBIDDEN
    flat = found.reshape(-1)
    wanted = np.where(untouchable, before.reshape(-1), promised.reshape(-1))
    wrong = np.flatnonzero((required | untouchable) & (ulps_apart(flat, wanted) != 0))
    first = None
    if wrong.size:
        place = int(wrong[0])
        first = tuple(int(i) for i in np.unravel_index(place, found.shape)), flat[place], wanted[place]
    return PaddingTrial(name, int(required.sum()), int(untouchable.sum()), int(wrong.size), first)


FULL_RUN_INSTANCES = 2_000_000
Array = NDArray[Any]
Pair = tuple[Array, Array, Sequence[tuple[int, ...]] | None]


@dataclass(frozen=True, slots=True)
class OutputTrial:
    """One output compared: the number of cells and of differences, the worst distance (units in the last place), and
    the first difference (logical index, kernel's value, interpreter's value).

    `beside_padding`: None if all cells were compared; else how many cells next to padding were, and how many there are.
    `arbitrary`: scalars that hold anything, as in the program, and cannot differ. `outside`: the differences that are
    not allowed: all of them, unless the kernel may compute otherwise.
    """

    buffer: str
    cells: int
    compared: int
    differing: int
    worst_ulps: int
    first: tuple[tuple[int, ...], Any, Any] | None
    beside_padding: tuple[int, int] | None = None
    arbitrary: int = 0
    outside: int = 0


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of a kernel beside the interpreter; times in seconds.

    `enclosed`: whether results were compared with an enclosure, since some differ and may; `open`: why there was none
    then.
    """

    outputs: tuple[OutputTrial, ...]
    padding: tuple[PaddingTrial, ...]
    instances: int
    sliced: bool
    kernel_seconds: float
    interpreter_seconds: float
    enclosed: bool = False
    open: str | None = None

    @property
    def equal(self) -> bool:
        """Whether every compared cell agrees within what is allowed, and padding satisfies its contract."""
        return all(output.outside == 0 for output in self.outputs) and all(
            padding.wrong == 0 for padding in self.padding
        )


def written(func: PrimFunc) -> tuple[str, ...]:
    """The parameters' buffers that the function stores to, in order."""
    stored = {store.buffer.data for store in stores_in(func.body)}
    return tuple(buffer.name for buffer in func.buffers if buffer.data in stored)


def compare_kernel(
    func: PrimFunc, scheduled: PrimFunc, kernel: Kernel, sizes: Mapping[str, int], seed: int = 0
) -> Trial:
    """Run `kernel`, built from `scheduled`, and the interpreter on `func`, the program before any transform; compare
    what they write.

    Outputs are compared in logical layout, their padding with the contract in `scheduled`. Inputs satisfy the
    assumptions of `func`. Raises LayoutproofError for sizes that do not fit and for too much data, Fault if the
    interpreter meets one, including a violated assumption.
    """
    layouts = runtime_layouts(func)
    shapes = logical_shapes(func, layouts, sizes)
    scalars = scalar_values(func, sizes)
    reference = _Reference(func, random_arrays(func, shapes, seed), layouts, sizes, scalars)
    arrays = reference.arrays
    found = {name: array.copy() for name, array in arrays.items()}
    numbers = {**sizes, **scalars}
    start = time.perf_counter()
    kernel(**found, **scalars_of(kernel, numbers))
    kernel_seconds = time.perf_counter() - start
    padding = compare_padding(scheduled, kernel, arrays, numbers)
    start = time.perf_counter()
    instances = reference.instances()
    sliced = instances > FULL_RUN_INSTANCES
    outputs = written(func)
    pairs: dict[str, Pair] = {}
    chosen: dict[str, Chosen] = {}
    anything: dict[str, int] = {}
    if sliced:
        chosen = {name: choose_cells(shapes[name], kernel, name, sizes, seed) for name in outputs}
        wanted = reference.slice({name: choice.cells for name, choice in chosen.items()})
        pairs = {n: (_pick(found[n], chosen[n].cells), wanted[n], chosen[n].cells) for n in outputs}
    else:
        for name, (array, defined) in reference.run(outputs).items():
            anything[name] = int(array.size - np.count_nonzero(defined))
            pairs[name] = (np.where(defined, found[name].reshape(-1), array), array, None)
    seconds = time.perf_counter() - start
    compared = [_compare(name, shapes[name], chosen.get(name), *pairs[name]) for name in outputs]
    results = tuple(replace(output, arbitrary=anything.get(output.buffer, 0)) for output in compared)
    trial = Trial(results, padding, instances, sliced, kernel_seconds, seconds)
    return _judged(trial, kernel, arrays, numbers, pairs) if kernel.may_differ and not trial.equal else trial


def _judged(
    trial: Trial,
    kernel: Kernel,
    arrays: Mapping[str, Array],
    numbers: Mapping[str, int | bool],
    pairs: Mapping[str, Pair],
) -> Trial:
    """The trial with different cells compared with the program's enclosure, if it has one."""
    chosen = {name: cells for name, (_, _, cells) in pairs.items() if cells is not None}
    try:
        enclosed = kernel.enclosed(arrays, numbers, limit=DEFAULT_LIMIT, cells=chosen if trial.sliced else None)
    except NoEnclosureError as problem:
        return replace(trial, open=str(problem))
    outputs = []
    for output in trial.outputs:
        found, wanted, _ = pairs[output.buffer]
        between = enclosed[output.buffer]
        far = outside(found.reshape(-1), Enclosed(between.low.reshape(-1), between.high.reshape(-1)))
        differs = ulps_apart(found.reshape(-1), wanted.reshape(-1)) != 0
        outputs.append(replace(output, outside=int(np.count_nonzero(far & differs))))
    return replace(trial, outputs=tuple(outputs), enclosed=True)


class _Reference:
    """The interpreter on a function with arrays in logical layout (a function that was read may have layouts already).

    `arrays` are changed where the function assumes something of them.
    """

    def __init__(
        self,
        func: PrimFunc,
        arrays: Mapping[str, Array],
        layouts: Mapping[str, Layout],
        sizes: Mapping[str, int],
        scalars: Mapping[str, int | bool],
    ) -> None:
        self.func, self.sizes = func, sizes
        types = {buffer.name: buffer.dtype for buffer in func.buffers}
        self.packers = {name: Packer(layout, types[name]) for name, layout in layouts.items() if layout.steps}
        self.shapes = physical_shapes(func, sizes)
        physical = {
            n: self.packers[n].pack(a, sizes).reshape(self.shapes[n]) if n in self.packers else a
            for n, a in arrays.items()
        }
        self.arguments: dict[str, Any] = {**physical, **sizes, **scalars}
        self.arrays = {**arrays, **self._meet_assumptions(physical)}

    def _meet_assumptions(self, physical: Mapping[str, Array]) -> dict[str, Array]:
        """Make the arguments satisfy the assumptions; arrays are in logical layout. Raises Fault on failure."""
        repairs, assumptions = repair_program(self.func), assumption_program(self.func)
        if repairs is None:
            return {}
        met = repaired(repairs, self.arguments, DEFAULT_LIMIT)
        if met is not None:
            self.arguments.update({name: met[name] for name in physical})
        # A run of a few cells would not come across all assumptions, and a difference would then tell nothing.
        if assumptions is not None:
            run(assumptions, self.arguments)
        changed = {name: self.arguments[name] for name in physical}
        return {
            name: self.packers[name].unpack(a, self.sizes) if name in self.packers else a for name, a in changed.items()
        }

    def instances(self) -> int:
        """The number of statement instances of a full run."""
        return count_instances(self.func, self.arguments)

    def run(self, outputs: Sequence[str]) -> dict[str, tuple[Array, Array]]:
        """Each output after a full run, with a mask of its defined scalars: the others may hold anything."""
        after = run(self.func, self.arguments)
        found = {}
        for name in outputs:
            array, defined = after.arrays[name], (after.states[name] == DEFINED).reshape(after.arrays[name].shape)
            packer = self.packers.get(name)
            if packer is not None:
                array, defined = (packer.unpack(part, self.sizes) for part in (array, defined))
            found[name] = array.reshape(-1), defined.reshape(-1)
        return found

    def slice(self, chosen: Mapping[str, Sequence[tuple[int, ...]]]) -> dict[str, Array]:
        """The chosen logical cells of each output."""
        cells = {name: [self._cell(name, index) for index in indices] for name, indices in chosen.items()}
        found = run_slice(self.func, self.arguments, cells)
        return {name: found[name] for name in chosen}

    def _cell(self, name: str, index: tuple[int, ...]) -> tuple[int, ...]:
        if name not in self.packers:
            return index
        packer = self.packers[name]
        for step in packer.layout.steps:
            index = step.index_map.evaluate(index, self.sizes)
        box = packer.shapes(self.sizes)[-1]
        shape = self.shapes[name][: len(self.shapes[name]) - (packer.dtype.lanes > 1)]
        return tuple(int(i) for i in np.unravel_index(int(np.ravel_multi_index(index, box)), shape))


def _pick(array: Array, cells: Sequence[tuple[int, ...]]) -> Array:
    """The elements at some indices, in order, with all lanes."""
    return np.array([array[cell] for cell in cells], dtype=array.dtype)


def _compare(
    name: str,
    shape: tuple[int, ...],
    chosen: Chosen | None,
    found: Array,
    wanted: Array,
    cells: Sequence[tuple[int, ...]] | None,
) -> OutputTrial:
    distance = ulps_apart(found.reshape(-1), wanted.reshape(-1))
    compared = len(cells) if cells is not None else prod(shape)
    differing = np.flatnonzero(distance)
    first = None
    if differing.size:
        place = int(differing[0])
        number = place // max(distance.size // max(compared, 1), 1)  # of the element that the lane belongs to
        index = cells[number] if cells is not None else tuple(int(i) for i in np.unravel_index(number, shape))
        first = (index, found.reshape(-1)[place], wanted.reshape(-1)[place])
    worst = int(distance.max()) if distance.size else 0
    beside = (chosen.beside_padding, chosen.all_beside_padding) if chosen is not None else None
    return OutputTrial(
        name, prod(shape), compared, int(differing.size), worst, first, beside, outside=int(differing.size)
    )
