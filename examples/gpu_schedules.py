"""GPU kernels for all sizes, each step proved: a tiled product, the softmax of rows, a transpose, a convolution.

Run it from anywhere: `python examples/gpu_schedules.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from layoutproof import IllegalTransform, IndexMap, Schedule
from layoutproof.ir.interp.run import run
from layoutproof.lowering.kernels.gpu import (
    conv2d_on_threads,
    lowered,
    matmul_on_threads,
    softmax_on_threads,
    transpose_on_threads,
)
from layoutproof.verify.layouts.conflicts import Memory, count_conflicts

Array = np.ndarray


def told(schedule: Schedule) -> None:
    """Print the steps with the time that each proof took, and what was assumed of floats."""
    times = [sum(verdict.seconds for verdict in step.verdicts) for step in schedule.steps]
    fast_math = {flag for step in schedule.steps for verdict in step.verdicts for flag in verdict.strictness}
    print(f"{schedule.original.name}: {len(times)} steps, each {schedule.steps[-1].status}, for all sizes")
    print(f"  fast-math assumptions: {', '.join(sorted(fast_math)) or 'none'}")
    slowest = max(range(len(times)), key=times.__getitem__)
    print(f"  check times: {sum(times):.2f} s in all, {max(times):.2f} s for {schedule.steps[slowest]}")


def assert_runs(schedule: Schedule, result: str, expected: Array, arguments: Mapping[str, object]) -> None:
    """Run the kernel in the interpreter, phase by phase, which also looks for races, and compare it with numpy."""
    found = run(schedule.func, dict(arguments))[result]
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-6)
    print(f"  {result} is what numpy makes")


def product() -> None:
    """A tile of the product for each block of threads; tiles of the factors go through shared memory."""
    s = lowered(matmul_on_threads(), {"k_0": ("A_shared", "B_shared"), "j_1": ("C_local",)})
    told(s)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, dtype=np.float32) for shape in ((64, 16), (16, 128)))
    assert_runs(s, "C", a @ b, {"A": a, "B": b, "n": 1, "l": 2, "m": 2})
    print("  barriers:", s.script().count("tvm_storage_sync"))

    # Each thread has its own registers: what another one has to read must not be there. The product would be wrong,
    # and that is refused, with the read that finds nothing.
    try:
        matmul_on_threads().set_scope("A_shared", "local")
    except IllegalTransform as problem:
        print("  A_shared in registers:", problem.status)


def softmax() -> None:
    """Threads find the largest element and the sum of a row together, in an order that is not fixed."""
    s = lowered(softmax_on_threads(), {"i": ("largest", "power", "total")})
    told(s)
    assert 'power = T.alloc_buffer((1, m * 32), "float32", scope="shared")' in s.script()
    x = np.random.default_rng(1).standard_normal((3, 64), dtype=np.float32)
    power = np.exp(x - x.max(axis=1, keepdims=True))
    assert_runs(s, "B", power / power.sum(axis=1, keepdims=True), {"A": x, "n": 3, "m": 2})


def transpose() -> None:
    """A tile goes through shared memory; with rows of 33, or swizzled, its columns are in different banks."""
    swizzled = lowered(transpose_on_threads(), {"j_0": ("A_shared",)})
    swizzled.transform_layout("root", "A_shared", lambda i, j: [i, j ^ i])
    told(swizzled)
    by_xor = count_conflicts(IndexMap.from_func(lambda c, x: [x * 32 + (c ^ x)], 2), (32, 32), Memory())

    s = lowered(transpose_on_threads(), {"j_0": ("A_shared",)})
    before = count_conflicts(column_of(32), (32, 32), Memory())
    s.storage_align("A_shared", 0, 32, 1)
    after = count_conflicts(column_of(33), (32, 32), Memory())
    told(s)
    assert 'A_shared = T.alloc_buffer((32, 33), "float32", scope="shared")' in s.script()
    a = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    for each in (swizzled, s):
        assert_runs(each, "B", a.T, {"A": a, "n": 2, "m": 1})
    worst = f"{before.worst} with rows of 32, {by_xor.worst} swizzled, {after.worst} with rows of 33"
    print(f"  rounds of 32 threads for a column: {worst}")


def column_of(row: int) -> IndexMap:
    """Where the threads `x` of a row read the column `c` of the tile, in a memory with rows of this length."""
    return IndexMap.from_func(lambda c, x: [x * row + c], 2)


def convolution() -> None:
    """Input and weights of one block of channels at a time go through shared memory."""
    s = lowered(conv2d_on_threads(), {"i": ("A_shared", "B_shared"), "x_1": ("C_local",)})
    told(s)
    rng = np.random.default_rng(2)
    a = rng.standard_normal((2, 10, 10, 4), dtype=np.float32)
    b = rng.standard_normal((1, 2, 3, 3, 4, 4), dtype=np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(a, (3, 3), axis=(1, 2))
    expected = np.einsum("iyxkpq,oipqkr->oyxr", windows, b)
    assert_runs(s, "C", expected, {"A": a, "B": b, "ci": 2, "co": 1, "h": 1, "w": 1})


if __name__ == "__main__":
    product()
    softmax()
    transpose()
    convolution()
