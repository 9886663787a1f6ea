"""Matrix multiplication: panels of both factors, a tile of the product in registers, padded where the extents are ragged."""

from __future__ import annotations

from collections.abc import Mapping

from layoutproof.lowering.reference.programs import check_extents, check_registers, check_vectors, matmul_program
from layoutproof.lowering.reference.steps import drop_guards, keep_in_registers, make_vectors, run_tiles_in_threads
from layoutproof.lowering.schedule import Schedule

TILES: Mapping[int, tuple[int, int]] = {16: (6, 16), 32: (8, 24)}
"""By number of vector registers, the rows and columns of the product that fit in them, in eights, beside what is multiplied."""


def matmul(
    m: int, n: int, k: int, *, registers: int = 16, tile: tuple[int, int] | None = None, lanes: int = 8, fused: bool = False
) -> Schedule:
    """The product of an `m` by `k` and a `k` by `n` matrix, float32, each element summed from the first product to the last.

    With a tile of `a` by `b`, which `registers` (16 or 32) chooses where it is not given: `A[i, p]` is stored as `[i//a, p, i%a]` and
    `B[p, j]` as `[j//b, p, j%b]`, their padding zero, `C[i, j]` as `[i//a, j//b, i%a, j%b]`, its padding anything. `fused` rounds a
    product and the sum it goes to once (`fma`), not twice. Raises LayoutproofError for extents below 1, for other numbers of registers
    and for a tile whose columns are no multiple of the lanes.
    """
    rows, columns = tile if tile is not None else TILES[check_registers("matmul", registers)]
    check_extents("matmul", m=m, n=n, k=k, rows=rows, columns=columns)
    check_vectors("matmul", columns, lanes)
    schedule = Schedule(matmul_program(m, n, k, fused=fused))
    schedule.transform_layout("matmul", "A", f"lambda i, p: [i//{rows}, p, i%{rows}]", pad_value=0.0)
    schedule.transform_layout("matmul", "B", f"lambda p, j: [j//{columns}, p, j%{columns}]", pad_value=0.0)
    schedule.transform_layout("matmul", "C", f"lambda i, j: [i//{rows}, j//{columns}, i%{rows}, j%{columns}]", pad_value="T.undef()")
    schedule.split("matmul", "i", [None, rows])
    schedule.split("matmul", "j", [None, columns // lanes, lanes])
    schedule.reorder("matmul", ["j_0", "i_0", "p", "i_1", "j_1", "j_2"])
    drop_guards(schedule, "matmul")
    schedule.cache_write("matmul", "C", "local")
    drop_guards(schedule, "C_local")
    schedule.split("C_local", "ax3", [None, lanes])
    schedule.reorder("C_local", ["ax1", "ax0", "ax2", "ax3_0", "ax3_1"])
    keep_in_registers(schedule, "matmul", "C", tile=["j_0", "i_0"])
    run_tiles_in_threads(schedule, ["j_0", "i_0"])
    make_vectors(schedule, lanes=("j_2", "ax3_1"), unrolled=("i_1", "j_1", "ax2", "ax3_0"))
    return schedule
