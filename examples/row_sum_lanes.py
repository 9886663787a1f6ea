"""Sums of rows without a branch: what padding must hold, what may not be regrouped, and what vectors make of it.

Run it from anywhere: `python examples/row_sum_lanes.py`.
"""

from __future__ import annotations

import numpy as np

from layoutproof import IllegalTransform, Schedule
from layoutproof.lowering.kernels.reference import row_sum, row_sum_program

ROWS, COLUMNS = 1000, 14


def main() -> None:
    """The whole way, one stage after the other."""
    # Rows of 14 in blocks of 4 end in two elements of padding. Adding them anyway saves a branch for every element, if
    # padding holds zeros. Without a contract that is refused.
    unknown = Schedule(row_sum_program(ROWS, COLUMNS))
    unknown.transform_layout("row_sum", "A", lambda i, j: [i, j // 4, j % 4])
    unknown.sequential_buffer_access("row_sum", "A")
    try:
        unknown.remove_branching_through_overcompute("row_sum")
    except IllegalTransform as problem:
        print("without a contract:", problem.status)

    # A float sum has an order: lanes that each take every eighth element of a row would add in another one. Lanes of
    # eight rows do not: each row is still summed from its first element to its last. So the rows go innermost, [i//32,
    # j//4, j%4, i%32].
    fast = row_sum(ROWS, COLUMNS)
    print(f"{len(fast.steps)} steps, each {fast.steps[-1].status}:")
    for step in fast.steps:
        print("  ", step.transform.primitive)
    fast_math = {flag for step in fast.steps for verdict in step.verdicts for flag in verdict.strictness}
    print("fast-math assumptions:", sorted(fast_math))

    # The same with its guards kept, and so without vectors: lanes that take different branches are no vector.
    slow = row_sum(ROWS, COLUMNS, branch=True)

    # Both kernels give what a loop gives, bit for bit.
    matrix = np.random.default_rng(0).standard_normal((ROWS, COLUMNS), dtype=np.float32)
    expected = np.zeros(ROWS, dtype=np.float32)
    for column in matrix.T:
        expected += column
    kernels = {"with the branch": slow.build("c"), "without it": fast.build("c")}
    for name, kernel in kernels.items():
        assert np.array_equal(kernel(matrix), expected)
        print(f"{name}: the sums of a loop, bit for bit")

    # What the loop over a tile became. How much faster that is: `python -m benchmarks.bench_kernels`.
    text = kernels["without it"].source.text
    start = text.index("        for (int32_t j_0")
    print(text[start : text.index("        LP_UNROLL(4)\n        for (int32_t ax1_0")])


if __name__ == "__main__":
    main()
