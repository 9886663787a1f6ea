"""The schedule of a convolution whose images are stored in blocks of channels: results in registers, channels as lanes.

A strip of neighbours in a row is computed at a time, for up to eight blocks of filters. The strip divides the row, so nothing is computed
that is not asked for, and each element's sum runs in the order that it had: bit for bit the same results. Like the schedule in
`lowering.reference.conv2d`, for any strides and for channels that fill no block, on images that are already stored so.
"""

from __future__ import annotations

from dataclasses import dataclass

from layoutproof.graph.accesses import statements_of
from layoutproof.graph.following import follow
from layoutproof.graph.rows import rows_of, tune_rows
from layoutproof.graph.signature import shape_of
from layoutproof.graph.together import attempted
from layoutproof.ir.expr import IntImm, Var, const
from layoutproof.ir.layout_record import layout_records
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block
from layoutproof.ir.visit import walk
from layoutproof.lowering.kernels.reference import keep_in_registers, make_vectors
from layoutproof.lowering.passes.find import find_block
from layoutproof.lowering.schedule.schedule import Schedule

BLOCKS = ("conv1d", "conv2d", "conv3d")
"""What the operator library calls the block of a convolution, over one, two or three axes."""
REGISTERS = 16
SCRATCH = 2
"""How many vector registers hold an element of the image and a product."""
MOST_TOGETHER, LONGEST_STRIP = 8, 13
"""The most blocks of filters that are computed together, and the longest strip of a row: longer ones were slower, measured."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """The block that computes, how many lanes a block of channels has, how many blocks of filters and neighbours in a row are computed
    together, and whether the channels that are summed over are whole blocks.
    """

    block: str
    lanes: int
    together: int
    strip: int
    whole: bool


def arranged(schedule: Schedule) -> Schedule:
    """The schedule with loops for a kernel: of a convolution as above, of plain images or matrices as in `rows`, where it is one of these
    and all of that is proved; else loops that follow.
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
    """The strip, a divisor of the width, and how many blocks of filters go with it: what reads filters least often, and fills registers."""
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
