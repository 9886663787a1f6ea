"""Reductions of rows: rows in lanes, so that nothing is regrouped; columns in blocks padded with what changes nothing, so that no branch
is left.
"""

from __future__ import annotations

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.reference.programs import check_extents, check_vectors, row_max_program, row_sum_program
from layoutproof.lowering.reference.steps import drop_guards, keep_in_registers, make_vectors, run_tiles_in_threads
from layoutproof.lowering.schedule import Schedule


def row_sum(rows: int, columns: int, *, block: int = 4, tile: int = 32, lanes: int = 8, branch: bool = False) -> Schedule:
    """The sums of the rows of a `rows` by `columns` matrix, float32, each from its first element to its last.

    `A[i, j]` is stored as `[i//tile, j//block, j%block, i%tile]`, its padding zero, and `B[i]` as `[i//tile, i%tile]`, its padding
    anything. With `branch` the guards against padding stay, and with them scalars: it is what is to be compared with. Raises
    LayoutproofError for extents below 1 and a tile that is no multiple of the lanes.
    """
    check_extents("row_sum", rows=rows, columns=columns, block=block, tile=tile)
    check_vectors("row_sum", tile, lanes)
    return _reduction(row_sum_program(rows, columns), 0.0, block, tile, lanes, branch)


def row_max(rows: int, columns: int, *, block: int = 4, tile: int = 32, lanes: int = 8, branch: bool = False) -> Schedule:
    """The largest elements of the rows of a `rows` by `columns` matrix, float32, no less than the lowest finite number.

    Stored as for `row_sum`, but the padding of `A` is minus infinity: the only value that is above nothing, the start of the maximum
    included. Raises LayoutproofError as `row_sum` does.
    """
    check_extents("row_max", rows=rows, columns=columns, block=block, tile=tile)
    check_vectors("row_max", tile, lanes)
    return _reduction(row_max_program(rows, columns), 'T.float32("-inf")', block, tile, lanes, branch)


def _reduction(program: PrimFunc, pad: object, block: int, tile: int, lanes: int, branch: bool) -> Schedule:
    """The schedule of a program with one block of its own name, which reduces `A[i, j]` over `j` to `B[i]`."""
    schedule, name = Schedule(program), program.name
    schedule.transform_layout(name, "A", f"lambda i, j: [i//{tile}, j//{block}, j%{block}, i%{tile}]", pad_value=pad)
    schedule.transform_layout(name, "B", f"lambda i: [i//{tile}, i%{tile}]", pad_value="T.undef()")
    schedule.split(name, "i", [None, tile // lanes, lanes])
    schedule.split(name, "j", [None, block])
    schedule.reorder(name, ["i_0", "j_0", "j_1", "i_1", "i_2"])
    if not branch:
        drop_guards(schedule, name)
    schedule.cache_write(name, "B", "local")
    if not branch:
        drop_guards(schedule, "B_local")
    schedule.split("B_local", "ax1", [None, lanes])
    keep_in_registers(schedule, name, "B", tile=["i_0"])
    run_tiles_in_threads(schedule, ["i_0"])
    if not branch:
        make_vectors(schedule, lanes=("i_2", "ax1_1"), unrolled=("j_1", "i_1", "ax1_0"))
    return schedule
