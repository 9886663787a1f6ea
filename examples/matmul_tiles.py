"""A matrix product with its tile in registers: how it is scheduled, what is proved of each step, and the C that comes
of it.

Run it from anywhere: `python examples/matmul_tiles.py`; with the name of a file, the certificate is written there.
`layoutproof.lowering.kernels.reference` is this schedule with its options.
"""

from __future__ import annotations

import sys

import numpy as np

from layoutproof import Schedule, Status
from layoutproof.lowering.kernels.reference import (
    drop_guards,
    keep_in_registers,
    make_vectors,
    matmul_program,
    run_tiles_in_threads,
)


def main() -> None:
    """The whole way, one stage after the other."""
    # 100 rows are not a multiple of 6, nor 200 columns of 16.
    schedule = Schedule(matmul_program(100, 200, 64))

    # Panels: what one step of the innermost loop needs lies side by side. Padding is zero in the factors, and anything
    # in the product.
    schedule.transform_layout("matmul", "A", lambda i, p: [i // 6, p, i % 6], pad_value=0.0)
    schedule.transform_layout("matmul", "B", lambda p, j: [j // 16, p, j % 16], pad_value=0.0)
    schedule.transform_layout("matmul", "C", lambda i, j: [i // 6, j // 16, i % 6, j % 16], pad_value="T.undef()")

    # Tiles of 6 by 16. Their last row and column reach into padding: computing that too is invisible, so the guards go.
    schedule.split("matmul", "i", [None, 6])
    schedule.split("matmul", "j", [None, 2, 8])
    schedule.reorder("matmul", ["j_0", "i_0", "p", "i_1", "j_1", "j_2"])
    drop_guards(schedule, "matmul")

    # The block works on a copy, which is copied back tile by tile; in the end each tile has memory of its own, small
    # enough for registers.
    schedule.cache_write("matmul", "C", "local")
    drop_guards(schedule, "C_local")
    schedule.split("C_local", "ax3", [None, 8])
    schedule.reorder("C_local", ["ax1", "ax0", "ax2", "ax3_0", "ax3_1"])
    keep_in_registers(schedule, "matmul", "C", tile=["j_0", "i_0"])
    script = schedule.script()
    print(script[script.index("    for j_0") : script.index("    for p0_2")])

    # Tiles in threads, columns in lanes; where the tile is set to zero, too.
    run_tiles_in_threads(schedule, ["j_0", "i_0"])
    make_vectors(
        schedule, lanes=("j_2", "j_2_init", "ax3_1"), unrolled=("i_1", "i_1_init", "j_1", "j_1_init", "ax2", "ax3_0")
    )
    claims = [verdict for step in schedule.steps for verdict in step.verdicts]
    proved = sum(verdict.status is Status.PROVED for verdict in claims)
    fast_math = sorted({x for v in claims for x in v.strictness})
    print(f"{len(schedule.steps)} steps, {len(claims)} claims, {proved} proved, fast-math assumptions: {fast_math}")

    kernel = schedule.build("c")
    text = kernel.source.text
    start = text.index("        for (int32_t p ")
    print(text[start : text.index("        LP_UNROLL(6)\n        for (int32_t ax2")])

    # Bit for bit what the program says: each element summed from the first product to the last.
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((100, 64), dtype=np.float32), rng.standard_normal((64, 200), dtype=np.float32)
    expected = np.zeros((100, 200), dtype=np.float32)
    for p in range(64):
        expected += a[:, p : p + 1] * b[p]
    assert np.array_equal(kernel(a, b), expected)
    print("the product is that of the loops, bit for bit")
    certificate = schedule.certificate
    print(f"certificate: {certificate.status}, {len(certificate.steps)} steps")
    for path in sys.argv[1:]:
        certificate.save(path)


if __name__ == "__main__":
    main()
