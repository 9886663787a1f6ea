"""The schedule of sums whose results lie as they are computed: convolutions of plain images and products of matrices.

A sum that keeps its order waits for each of its additions; many sums side by side do not. Where what is read lies in rows like the result,
whole rows are summed at a time, for some filters or rows of the other matrix together. Where what is read lies along the axis that is
summed over, a few neighbours of the result are. Each sum runs in the order that it had: bit for bit the same results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layoutproof.graph.accesses import Access, update_of
from layoutproof.ir.expr import IntImm, Var, const
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, IterKind, IterVar
from layoutproof.ir.visit import free_variables, walk
from layoutproof.lowering.kernels.reference import keep_in_registers, make_vectors
from layoutproof.lowering.schedule.schedule import Schedule

TOGETHER = 8
"""The most rows, or neighbours that read rows of their own, that are summed together: processors foresee only so many streams."""
LONGEST = 256
"""The longest part of a row that is summed at a time: some of them fit in the first cache."""
CONVOLUTIONS, FILTERS = ("conv1d", "conv2d", "conv3d"), 1
"""The blocks of convolutions, and the place of the variable for filters, also where groups make the channels depend on it."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The block that sums, its loops over results and over what is summed, the array that it makes, and which of the loops over results
    run innermost: by place, with how many iterations, the last of them written out or not.
    """

    block: str
    spatial: tuple[str, ...]
    summed: tuple[str, ...]
    result: str
    inner: tuple[tuple[int, int], ...]
    unrolled: bool


def rows_of(func: PrimFunc) -> Rows | None:
    """How a function's sums run side by side; None for a function of another kind."""
    blocks = [node for node in walk(func.body) if isinstance(node, Block) and any(each.kind is IterKind.REDUCE for each in node.iter_vars)]
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
        ended = bool(dots) and all(any(each.var in free_variables(load.indices[-1]) for each in summed) for load in dots)
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
    return max(size for size in range(1, most + 1) if extent.value % size == 0) if isinstance(extent, IntImm) and extent.value else 1


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
    make_vectors(schedule, lanes=(), unrolled=[f"{names[place]}_1" for place in written for names in (rows.spatial, copied)])
