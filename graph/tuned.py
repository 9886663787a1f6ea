"""The schedule of a convolution whose images are stored in blocks of channels: results in registers, channels as lanes.

A strip of neighbours in a row is computed at a time, for up to four blocks of filters. The strip divides the row, so nothing is computed
that is not asked for, and each element's sum runs in the order that it had: bit for bit the same results. Like the schedule in
`lowering.reference.conv2d`, for any strides and for channels that fill no block, on images that are already stored so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from layoutproof.graph.accesses import statements_of
from layoutproof.graph.following import follow
from layoutproof.graph.signature import shape_of
from layoutproof.graph.together import Drafted, apply_together, drafted
from layoutproof.ir.expr import IntImm, Var, const
from layoutproof.ir.layout_record import layout_records
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block
from layoutproof.ir.visit import walk
from layoutproof.lowering.find import find_block
from layoutproof.lowering.illegal import IllegalTransform
from layoutproof.lowering.reference.steps import keep_in_registers, make_vectors
from layoutproof.lowering.schedule import Schedule
from layoutproof.lowering.vectors.vectorize import VectorizeLoop

BLOCK = "conv2d"
REGISTERS = 16
SCRATCH = 2
"""How many vector registers hold an element of the image and a product."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """How many lanes a block of channels has, how many blocks of filters and neighbours in a row are computed together, and whether the
    channels that are summed over are whole blocks.
    """

    lanes: int
    together: int
    strip: int
    whole: bool


def arranged(schedule: Schedule) -> Schedule:
    """The schedule with loops for a kernel: a convolution as above, where it is one and all of that is proved; else loops that follow."""
    tiling = tiling_of(schedule.func)
    if tiling is None:
        return follow(schedule)
    tuned = schedule.fork()
    try:
        apply_together(tuned, _groups(drafted(tuned.func, lambda draft: _tune(draft, tiling))))
    except IllegalTransform:
        return follow(schedule)
    return tuned


def tiling_of(func: PrimFunc) -> Tiling | None:
    """The tiling of a convolution of the operator library in blocks of channels; None for any other function."""
    blocks = [node for node in walk(func.body) if isinstance(node, Block) and node.name == BLOCK]
    if len(blocks) != 1 or len(blocks[0].iter_vars) != 7:
        return None
    stored = next((s.store.buffer for s in statements_of(func) if s.store.buffer.name == "Y"), None)
    if stored is None or stored.rank != 5 or stored.data.name not in layout_records(func):
        return None
    _, filters, _, width, lanes = shape_of(stored)
    extents = [each.domain.extent for each in blocks[0].iter_vars if isinstance(each.binding, Var)]
    if len(extents) != 7 or lanes < 2 or extents[1] != const(filters * lanes):
        return None
    strip, together = best_tile(filters, width)
    channels = extents[4]
    return Tiling(lanes, together, strip, isinstance(channels, IntImm) and channels.value % lanes == 0)


def best_tile(blocks: int, width: int) -> tuple[int, int]:
    """The strip, a divisor of the width, and how many blocks of filters go with it: what loads least for what it computes."""
    fitting = [
        (strip, together)
        for together in range(1, 5)
        for strip in range(1, REGISTERS)
        if width % strip == 0 and blocks % together == 0 and together * (strip + 1) + SCRATCH <= REGISTERS
    ]
    return min(fitting, key=lambda tile: ((tile[0] + tile[1]) / (tile[0] * tile[1]), -tile[0]))


def _groups(passes: Sequence[Drafted]) -> Iterator[tuple[Drafted, ...]]:
    """All passes up to the one that makes lanes, and each one from there on: witnesses over lanes are not composed."""
    first = next((number for number, (each, _) in enumerate(passes) if each.primitive == VectorizeLoop.primitive), len(passes))
    yield tuple(passes[:first])
    yield from ((each,) for each in passes[first:])


def _tune(schedule: Schedule, tiling: Tiling) -> None:
    n, k, y, x, c, r, s = _loops(schedule)
    schedule.split(BLOCK, k, [None, tiling.together, tiling.lanes])
    schedule.split(BLOCK, x, [None, tiling.strip])
    summed = [c]
    if tiling.whole:
        schedule.split(BLOCK, c, [None, tiling.lanes])
        summed = [f"{c}_0", f"{c}_1"]
    tile = [n, f"{k}_0", y, f"{x}_0"]
    schedule.reorder(BLOCK, [*tile, *summed, r, s, f"{x}_1", f"{k}_1", f"{k}_2"])
    schedule.cache_write(BLOCK, "Y", "local")
    schedule.split("Y_local", "ax1", [None, tiling.together])
    schedule.split("Y_local", "ax3", [None, tiling.strip])
    schedule.reorder("Y_local", ["ax0", "ax1_0", "ax2", "ax3_0", "ax1_1", "ax3_1", "ax4"])
    keep_in_registers(schedule, BLOCK, "Y", tile=tile)
    make_vectors(schedule, lanes=(f"{k}_2", "ax4"), unrolled=(f"{k}_1", f"{x}_1", "ax1_1", "ax3_1"))


def _loops(schedule: Schedule) -> list[str]:
    """The loops of the block's variables, in their order: the operator library binds each variable to one."""
    bindings = (each.binding for each in find_block(schedule.func, BLOCK).iter_vars)
    return [binding.name for binding in bindings if isinstance(binding, Var)]
