"""Running a graph with generated C, one kernel for each distinct function, and their schedules: reductions with results
in registers, channels or neighbours as lanes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from layoutproof.graph.flow.array_accesses import Access, statements_of, update_of
from layoutproof.graph.flow.layout_flow import NAME
from layoutproof.graph.model.graph import Array, Shape, shape_of, signature_of
from layoutproof.graph.model.graph_witness import Steps
from layoutproof.graph.model.layout_maps import box_of
from layoutproof.graph.tuning.loop_schedules import attempted, follow
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.dtype import numpy_dtype
from layoutproof.ir.expr import IntImm, Var, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.layout_record import layout_records
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, IterKind, IterVar
from layoutproof.ir.visit import free_variables, walk
from layoutproof.lowering.kernels.reference import keep_in_registers, make_vectors
from layoutproof.lowering.kernels.relayout import schedule_copy
from layoutproof.lowering.kernels.relayout_program import LOGICAL, PHYSICAL, plain_program, read_relayout
from layoutproof.lowering.passes.find import find_block
from layoutproof.lowering.runtime.build_c import CKernel
from layoutproof.lowering.schedule.schedule import Schedule

TOGETHER = 8
"""The most rows, or neighbours that read rows of their own, that are summed together: processors foresee only so many
streams.
"""
LONGEST = 256
"""The longest part of a row that is summed at a time: some of them fit in the first cache."""
CONVOLUTIONS, FILTERS = ("conv1d", "conv2d", "conv3d"), 1
"""The blocks of convolutions, and the place of the variable for filters, also where groups make the channels depend on
it.
"""


@dataclass(frozen=True, slots=True)
class Rows:
    """The block that sums, its loops over results and over what is summed, the array that it makes, and which of the
    loops over results run innermost: by place, with how many iterations, the last of them written out or not.
    """

    block: str
    spatial: tuple[str, ...]
    summed: tuple[str, ...]
    result: str
    inner: tuple[tuple[int, int], ...]
    unrolled: bool


def rows_of(func: PrimFunc) -> Rows | None:
    """How a function's sums run side by side; None for a function of another kind."""
    blocks = [
        node
        for node in walk(func.body)
        if isinstance(node, Block) and any(each.kind is IterKind.REDUCE for each in node.iter_vars)
    ]
    if len(blocks) != 1:
        return None
    (block,) = blocks
    spatial = [each for each in block.iter_vars if each.kind is IterKind.SPATIAL]
    summed = [each for each in block.iter_vars if each.kind is IterKind.REDUCE]
    statement = update_of(func, block)
    if statement is None or not spatial or statement.store.indices != tuple(each.var for each in spatial):
        return None
    loops = [tuple(each.binding.name for each in some if isinstance(each.binding, Var)) for some in (spatial, summed)]
    if [len(names) for names in loops] != [len(spatial), len(summed)]:
        return None
    loads = [load for load in statement.loads if load.buffer != statement.store.buffer]
    inner, unrolled = _inner(block.name, spatial, summed, loads)
    return Rows(block.name, loops[0], loops[1], statement.store.buffer.name, inner, unrolled) if inner else None


def _inner(
    name: str, spatial: Sequence[IterVar], summed: Sequence[IterVar], loads: Sequence[Access]
) -> tuple[tuple[tuple[int, int], ...], bool]:
    """Which loops over results run innermost, and whether the last of them is written out."""
    last = len(spatial) - 1
    row = spatial[last].var
    along = [load for load in loads if load.indices and row in free_variables(load.indices[-1])]
    if not along:
        dots = [load for load in loads if any(row in free_variables(index) for index in load.indices)]
        ended = bool(dots) and all(
            any(each.var in free_variables(load.indices[-1]) for each in summed) for load in dots
        )
        neighbours = _part(spatial[last], TOGETHER)
        return (((last, neighbours),) if ended and neighbours > 1 else ()), True
    length = _part(spatial[last], LONGEST)
    used = {variable for load in along for index in load.indices for variable in free_variables(index)}
    grouped = name in CONVOLUTIONS and summed[0].domain.extent != const(1)
    apart = [place for place, each in enumerate(spatial[:-1]) if each.var not in used or (grouped and place == FILTERS)]
    shared = [(place, _part(spatial[place], TOGETHER)) for place in apart[-1:]]
    return ((*shared, (last, length)) if shared else ()), False


def _part(variable: IterVar, most: int) -> int:
    """The largest divisor of a variable's extent that is not above a number; 1 where it is unknown."""
    extent = variable.domain.extent
    return (
        max(size for size in range(1, most + 1) if extent.value % size == 0)
        if isinstance(extent, IntImm) and extent.value
        else 1
    )


def tune_rows(schedule: Schedule, rows: Rows) -> None:
    """Apply the steps. Raises IllegalTransform where one does not apply."""
    local = f"{rows.result}_local"
    copied = [f"ax{place}" for place in range(len(rows.spatial))]
    for place, size in rows.inner:
        schedule.split(rows.block, rows.spatial[place], [None, size])
    places = [place for place, _ in rows.inner]
    tile = [f"{name}_0" if place in places else name for place, name in enumerate(rows.spatial)]
    schedule.reorder(rows.block, [*tile, *rows.summed, *(f"{rows.spatial[place]}_1" for place in places)])
    schedule.cache_write(rows.block, rows.result, "local")
    for place, size in rows.inner:
        schedule.split(local, copied[place], [None, size])
    around = [f"{name}_0" if place in places else name for place, name in enumerate(copied)]
    schedule.reorder(local, [*around, *(f"{copied[place]}_1" for place in places)])
    keep_in_registers(schedule, rows.block, rows.result, tile=tile)
    written = places if rows.unrolled else places[:-1]
    make_vectors(
        schedule, lanes=(), unrolled=[f"{names[place]}_1" for place in written for names in (rows.spatial, copied)]
    )


BLOCKS = ("conv1d", "conv2d", "conv3d")
"""What the operator library calls the block of a convolution, over one, two or three axes."""
REGISTERS = 16
SCRATCH = 2
"""How many vector registers hold an element of the image and a product."""
MOST_TOGETHER, LONGEST_STRIP = 8, 13
"""The most blocks of filters that are computed together, and the longest strip of a row: longer ones were slower,
measured.
"""


@dataclass(frozen=True, slots=True)
class Tiling:
    """The block that computes, how many lanes a block of channels has, how many blocks of filters and neighbours in a
    row are computed together, and whether the channels that are summed over are whole blocks.
    """

    block: str
    lanes: int
    together: int
    strip: int
    whole: bool


def arranged(schedule: Schedule) -> Schedule:
    """The schedule with loops for a kernel: of a convolution as above, of plain images or matrices as in `rows`, where
    it is one of these and all of that is proved; else loops that follow.
    """
    tiling, rows = tiling_of(schedule.func), rows_of(schedule.func)
    tuned = None
    if tiling is not None:
        tuned = attempted(schedule, lambda draft: _tune(draft, tiling))
    elif rows is not None:
        tuned = attempted(schedule, lambda draft: tune_rows(draft, rows))
    return tuned if tuned is not None else follow(schedule)


def tiling_of(func: PrimFunc) -> Tiling | None:
    """The tiling of a convolution of the operator library in blocks of channels; None for any other function.

    None too where nothing is summed over channels, as in a depthwise convolution: its filters have nothing to share.
    """
    blocks = [node for node in walk(func.body) if isinstance(node, Block) and node.name in BLOCKS]
    stored = next((s.store.buffer for s in statements_of(func) if s.store.buffer.name == "Y"), None)
    if len(blocks) != 1 or stored is None or stored.data.name not in layout_records(func):
        return None
    axes = BLOCKS.index(blocks[0].name) + 1
    extents = [each.domain.extent for each in blocks[0].iter_vars if isinstance(each.binding, Var)]
    if len(blocks[0].iter_vars) != 2 * axes + 3 or len(extents) != 2 * axes + 3 or stored.rank != axes + 3:
        return None
    _, filters, *_, width, lanes = shape_of(stored)
    channels = extents[axes + 2]
    if lanes < 2 or extents[1] != const(filters * lanes) or channels == const(1):
        return None
    strip, together = best_tile(filters, width)
    return Tiling(blocks[0].name, lanes, together, strip, isinstance(channels, IntImm) and channels.value % lanes == 0)


def best_tile(blocks: int, width: int) -> tuple[int, int]:
    """The strip, a divisor of the width, and the number of filter blocks that read filters least and fill registers."""
    fitting = [
        (strip, together)
        for together in range(1, MOST_TOGETHER + 1)
        for strip in range(1, LONGEST_STRIP + 1)
        if width % strip == 0 and blocks % together == 0 and together * strip + SCRATCH <= REGISTERS
    ]
    return min(fitting, key=lambda tile: (1 / tile[0] + 1 / (tile[0] * tile[1]), -tile[0]))


def _tune(schedule: Schedule, tiling: Tiling) -> None:
    axes, block = BLOCKS.index(tiling.block) + 1, tiling.block
    n, k, *places = _loops(schedule, block)[: axes + 2]
    c, *window = _loops(schedule, block)[axes + 2 :]
    schedule.split(block, k, [None, tiling.together, tiling.lanes])
    schedule.split(block, places[-1], [None, tiling.strip])
    summed = [c]
    if tiling.whole:
        schedule.split(block, c, [None, tiling.lanes])
        summed = [f"{c}_0", f"{c}_1"]
    tile = [n, f"{k}_0", *places[:-1], f"{places[-1]}_0"]
    schedule.reorder(block, [*tile, *summed, *window, f"{places[-1]}_1", f"{k}_1", f"{k}_2"])
    schedule.cache_write(block, "Y", "local")
    row, lane = f"ax{axes + 1}", f"ax{axes + 2}"
    schedule.split("Y_local", "ax1", [None, tiling.together])
    schedule.split("Y_local", row, [None, tiling.strip])
    copied = ["ax0", "ax1_0", *(f"ax{place + 2}" for place in range(axes - 1)), f"{row}_0"]
    schedule.reorder("Y_local", [*copied, "ax1_1", f"{row}_1", lane])
    keep_in_registers(schedule, block, "Y", tile=tile)
    make_vectors(schedule, lanes=(f"{k}_2", lane), unrolled=(f"{k}_1", f"{places[-1]}_1", "ax1_1", f"{row}_1"))


def _loops(schedule: Schedule, block: str) -> list[str]:
    """The loops of the block's variables, in their order: the operator library binds each variable to one."""
    bindings = (each.binding for each in find_block(schedule.func, block).iter_vars)
    return [binding.name for binding in bindings if isinstance(binding, Var)]


@dataclass(frozen=True, slots=True)
class _Ready:
    """A function's kernel with its arrays' names, shapes and types. `direct`: it requires nothing else of them."""

    kernel: CKernel
    direct: bool
    operands: tuple[tuple[str, Shape, np.dtype[Any]], ...]
    results: tuple[tuple[str, Shape, np.dtype[Any]], ...]

    def fits(self, operands: Sequence[Array]) -> bool:
        """Whether the kernel can run on these operands as they are; its results are new memory."""
        return self.direct and all(
            array.shape == shape and array.dtype == dtype and array.flags.c_contiguous and array.flags.aligned
            for array, (_, shape, dtype) in zip(operands, self.operands, strict=True)
        )


class Kernels:
    """A runner for `run_graph`: functions by their C kernels, on arrays as the functions have them; `move` is its
    mover.

    `schedules` says, by names of functions, how relaid ones came about. The loops of all of them are arranged, each
    step proved or left out. `check` compares each kernel with the reference interpreter on a small instance.
    """

    def __init__(self, schedules: Mapping[str, Steps] | None = None, *, check: bool = False) -> None:
        self._schedules = dict(schedules) if schedules is not None else {}
        self._check = check
        self._built: dict[PrimFunc, CKernel] = {}
        self._ready: dict[PrimFunc, _Ready] = {}
        self._movers: dict[tuple[IndexMap, Shape, np.dtype[Any]], tuple[CKernel, Shape]] = {}

    def __call__(self, func: PrimFunc, operands: Sequence[Array]) -> tuple[Array, ...]:
        """The results of a function. Raises LayoutproofError without a kernel in C, or for arrays that do not fit."""
        ready = self._ready.get(func)
        if ready is None:
            signature = signature_of(func)
            kernel = self.kernel(func)
            direct = all(each.requirement is None for each in kernel.assumptions)
            ready = _Ready(kernel, direct, _arrays(signature.operands), _arrays(signature.results))
            self._ready[func] = ready
        made = tuple(np.empty(shape, dtype) for _, shape, dtype in ready.results)
        arrays = {name: array for (name, *_), array in zip(ready.results, made, strict=True)}
        fitting = ready.fits(operands)
        for (name, *_), array in zip(ready.operands, operands, strict=True):
            arrays[name] = array if fitting else np.ascontiguousarray(array)
        if fitting:
            ready.kernel.launcher.launch(arrays, {})
        else:
            ready.kernel.raw(**arrays)
        return made

    def also(self, schedules: Mapping[str, Steps]) -> Kernels:
        """A runner for a graph with other schedules; both take kernels from each other."""
        variant = Kernels(schedules, check=self._check)
        variant._built, variant._movers = self._built, self._movers
        return variant

    def kernel(self, func: PrimFunc) -> CKernel:
        """The kernel of a function; functions that differ in their name alone share one."""
        key = replace(func, name=NAME)
        if key not in self._built:
            schedule = self._schedules.get(func.name)
            known = (
                schedule.fork()
                if isinstance(schedule, Schedule) and schedule.func == key
                else Schedule(key, allowed=frozenset())
            )
            self._built[key] = arranged(known).build("c", check=self._check)
        return self._built[key]

    def move(self, array: Array, index_map: IndexMap) -> Array:
        """The array with each element where a bijection says, by a kernel for the layout change."""
        key = (index_map, array.shape, array.dtype)
        if key not in self._movers:
            # In one thread, as all other kernels are: threads would wake for each layout change anew.
            change = read_relayout(index_map, array.shape, array.dtype.name, False, 0, None)
            copied = schedule_copy(plain_program(change), array.dtype.itemsize, threads=False)
            self._movers[key] = copied.build("c", check=self._check), box_of(index_map, array.shape)
        kernel, shape = self._movers[key]
        made: Array = np.empty(shape, dtype=array.dtype)
        kernel.launcher.launch({LOGICAL: np.require(array, requirements=["C", "A"]), PHYSICAL: made}, {})
        return made


def _arrays(buffers: Sequence[Buffer]) -> tuple[tuple[str, Shape, np.dtype[Any]], ...]:
    return tuple((buffer.name, shape_of(buffer), numpy_dtype(buffer.dtype)) for buffer in buffers)
