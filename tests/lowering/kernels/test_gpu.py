"""Reference schedules for GPUs: proved for all sizes, as short as they should be, and as quick to prove."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.lowering.kernels.gpu_runs import RUNS, made
from tests.shares import one_in

from layoutproof.ir.interp.run import run
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.compare.compare_programs import compare
from layoutproof.lowering.kernels.gpu import (
    conv2d_on_threads,
    lowered,
    matmul_on_threads,
    softmax_on_threads,
    transpose_on_threads,
)
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.verdict.verdict import Status

EVERY: dict[str, tuple[Callable[[], Schedule], set[str]]] = {
    "matmul": (matmul_on_threads, set()),
    "softmax": (softmax_on_threads, {"ninf", "nnan", "nsz", "reassoc"}),
    "transpose": (transpose_on_threads, set()),
    "conv2d": (conv2d_on_threads, set()),
}


@one_in(7)
@pytest.mark.parametrize("name", EVERY)
def test_each_step_is_proved_for_all_sizes(name: str) -> None:
    """Sizes are symbols; bit for bit, where no threads join floats. All is proved once more, as a whole."""
    make, fast_math = EVERY[name]
    schedule = made(make)
    assert {step.status for step in schedule.steps} == {Status.PROVED}
    assert {name for step in schedule.steps for v in step.verdicts for name in v.strictness} == fast_math
    assert schedule.original.buffers[0].shape == schedule.func.buffers[0].shape
    assert compare(schedule.original, schedule.func).status is Status.PROVED


@one_in(4)
def test_the_product_has_tiles_in_shared_memory_and_in_registers() -> None:
    """As large as a tile, with two barriers in each round, and right in the interpreter."""
    schedule = lowered(made(matmul_on_threads).fork(), {"k_0": ("A_shared", "B_shared"), "j_1": ("C_local",)})
    text = schedule.script()
    assert 'A_shared = T.alloc_buffer((64, 8), "float32", scope="shared")' in text
    assert 'B_shared = T.alloc_buffer((8, 64), "float32", scope="shared")' in text
    assert 'C_local = T.alloc_buffer((4, 4), "float32", scope="local")' in text
    assert text.count('T.tvm_storage_sync("shared")') == 2
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((64, 16), (16, 64)))
    assert (run(schedule.func, {"A": a, "B": b, "n": 1, "l": 2, "m": 1})["C"] == a @ b).all()


@pytest.mark.parametrize("target", ["c", "opencl"])
@pytest.mark.parametrize("name", RUNS)
@one_in(10)
def test_kernels_compute_what_numpy_does(name: str, target: str) -> None:
    """In C with the phases as loops, in OpenCL with work groups and barriers."""
    case = RUNS[name]()
    kernel = case.schedule().build(target, check=False)
    assert case.is_right(kernel(**case.arguments))


@one_in(4)
def test_a_reduction_over_threads_stays_a_block() -> None:
    """The others are lowered, and memory is as large as a row: without the block, threads would race."""
    schedule = RUNS["softmax"]().schedule()
    assert {step.status for step in schedule.steps} == {Status.PROVED}
    text = schedule.script()
    assert [line.strip() for line in text.splitlines() if "T.sblock(" in line] == [
        'with T.sblock("max"):', 'with T.sblock("sum"):'
    ]  # fmt: skip
    assert 'power = T.alloc_buffer((1, m * 32), "float32", scope="shared")' in text
    assert compare(schedule.original, loads(text)).status is Status.PROVED


@one_in(4)
def test_a_swizzled_tile_is_proved_for_all_sizes() -> None:
    """In place of longer rows; a map that is not one to one is refused."""
    schedule = RUNS["transpose swizzled"]().schedule()
    assert {step.status for step in schedule.steps} == {Status.PROVED}
    text = schedule.script()
    assert "A_shared[j_1, i_1 * 8 + i_2 ^ j_1]" in text
    with pytest.raises(IllegalTransform):
        schedule.transform_layout("root", "A_shared", "lambda i, j: [i, j & i]")


@one_in(42)
def test_a_tile_that_is_read_by_another_swizzle_is_refuted() -> None:
    """The sources of values in a tile of exclusive ors take isl half a minute."""
    schedule = RUNS["transpose swizzled"]().schedule()
    text = schedule.script()
    assert "A_shared[j_1, i_1 * 8 + i_2 ^ j_1]" in text
    other = loads(text.replace("i_1 * 8 + i_2 ^ j_1", "i_1 * 8 + i_2 ^ j_1 // 2"))
    assert compare(schedule.original, other).status is Status.REFUTED


@one_in(4)
def test_a_tile_that_threads_do_not_cover_is_refused() -> None:
    """Half of the tile is fetched, and the rest read all the same."""
    schedule = made(matmul_on_threads).fork()
    while schedule.steps[-1].transform.primitive != "compute_at":
        schedule.undo()
    text = schedule.script()
    half = text.replace("T.grid(8, 64)", "T.grid(8, 32)")
    assert half != text
    assert compare(schedule.original, loads(half)).status is not Status.PROVED


@one_in(4)
def test_memory_of_one_thread_is_not_seen_by_others() -> None:
    """Tiles in registers are refused, sums in shared memory are not."""
    with pytest.raises(IllegalTransform) as refused:
        made(transpose_on_threads).fork().set_scope("A_shared", "local")
    assert refused.value.status is Status.REFUTED
    assert made(matmul_on_threads).fork().set_scope("C_local", "shared").status is Status.PROVED


@one_in(4)
def test_a_schedule_is_replayed_from_its_trace() -> None:
    """Steps with thread axes are data as others are."""
    schedule = made(softmax_on_threads)
    assert Schedule.replay(schedule.original, schedule.trace).func == schedule.func


@one_in(14)
def test_layouts_and_loops_inside_a_kernel_change() -> None:
    """Of memory that threads share or have for themselves, in two buffers by turns, as vectors, unrolled."""
    schedule = made(matmul_on_threads).fork()
    done = [
        schedule.transform_layout("product", "A_shared", lambda i, j: [j, i]),
        schedule.transform_layout("product", "C_local", lambda i, j: [j, i]),
        schedule.inject_double_buffer("A_shared", "A_shared", "k_0"),
        schedule.vectorize("C_local", "ax1"),
        schedule.unroll("product", "k_1"),
    ]
    assert {step.status for step in done} == {Status.PROVED}
