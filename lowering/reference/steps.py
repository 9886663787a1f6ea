"""Steps that the reference schedules have in common: guards dropped, results kept in registers, loops made lanes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from layoutproof.ir.expr import TRUE
from layoutproof.ir.stmt import For
from layoutproof.ir.visit import walk
from layoutproof.lowering.find import find_block
from layoutproof.lowering.layout import ROOT
from layoutproof.lowering.loops.decompose_reduction import hoisted_inits
from layoutproof.lowering.schedule import Schedule


def drop_guards(schedule: Schedule, block: str) -> None:
    """Let a block run where its guard does not let it, which nobody sees; nothing to do for a block without one."""
    if find_block(schedule.func, block).where != TRUE:
        schedule.remove_branching_through_overcompute(block)


def keep_in_registers(schedule: Schedule, block: str, buffer: str, *, tile: Sequence[str]) -> None:
    """Let a block work on memory of each tile, and make of the blocks a nest of loops.

    `tile` are the loops over tiles, outermost first, which stand outermost around the block, and as such around `<buffer>_local`, which
    copies what was computed to the buffer. They become one nest, in whose innermost loop a tile is allocated.
    """
    for loop in tile:
        schedule.merge_adjacent_loops(block, loop)
    for transform in hoisted_inits(schedule.func):
        schedule.apply(transform)
    schedule.lower_blocks()
    schedule.simplify()
    inner = places(schedule, tile[-1:])[0]
    schedule.sink_allocation(f"{buffer}_local", ROOT, inner)
    schedule.compact_buffer(f"{buffer}_local")
    schedule.simplify()


def run_tiles_in_threads(schedule: Schedule, tile: Sequence[str]) -> None:
    """Make one parallel loop of the loops over tiles."""
    if len(tile) > 1:
        schedule.fuse(ROOT, list(tile))
    schedule.parallel(ROOT, "_".join([*tile, "fused"]) if len(tile) > 1 else tile[0])


def make_vectors(schedule: Schedule, *, lanes: Collection[str], unrolled: Collection[str]) -> None:
    """Make lanes of the loops of some names, and mark others for the compiler to write out; inits that were split off likewise."""
    for name in unrolled:
        for place in places(schedule, (name, f"{name}_init")):
            schedule.unroll(ROOT, place)
    for name in lanes:
        for place in places(schedule, (name, f"{name}_init")):
            schedule.vectorize(ROOT, place)
    schedule.vectorize_loop()
    schedule.simplify()


def places(schedule: Schedule, names: Collection[str]) -> list[int]:
    """The positions of the loops with one of these variables, among all loops in the order of the text."""
    loops = (node for node in walk(schedule.func.body) if isinstance(node, For))
    return [place for place, loop in enumerate(loops) if loop.var.name in names]
