"""Caches on operators: proved, equal results, and free in their layout while parameters keep theirs."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from tests.lowering.caching.cases import buffers_read, buffers_written, is_proved, random_tiles, tampered, tiled
from tests.lowering.programs import program, running_sum, two_stages
from tests.lowering.small_operators import OPERATORS, assert_same_results, small
from tests.random.nests import random_reduction
from tests.shares import chosen, one_in

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.ir.stmt import Block
from layoutproof.ir.visit import walk
from layoutproof.lowering.caching.cache_read_write import CacheRead, CacheWrite
from layoutproof.lowering.passes.base import Pass
from layoutproof.lowering.passes.find import find_buffer
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.verify.verdict.verdict import Status


@one_in(10)
@pytest.mark.parametrize("access", chosen(buffers_read(), lambda number: number % 4 == 0, "-".join))
def test_what_is_read_may_be_copied_and_stored_differently(access: tuple[str, str, str]) -> None:
    """The copy of each buffer that a block reads is proved, then its layout changes, and the signature does not."""
    name, block, buffer = access
    schedule = Schedule(small(name), interface="fixed")
    schedule.cache_read(block, buffer, "local")
    assert_same_results(small(name), schedule.func)
    schedule.transform_layout(block, f"{buffer}_local", tiled(schedule.func, buffer))
    assert_same_results(small(name), schedule.func)
    assert schedule.func.buffers == small(name).buffers
    schedule.lower()


@one_in(10)
@pytest.mark.parametrize("access", chosen(buffers_written(), lambda number: number % 4 == 0, "-".join))
def test_what_is_written_may_be_copied_and_stored_differently(access: tuple[str, str, str]) -> None:
    """A block writes to a buffer of its own, then the layout of that changes, and the signature does not."""
    name, block, buffer = access
    schedule = Schedule(small(name), interface="fixed")
    schedule.cache_write(block, buffer, "local")
    assert_same_results(small(name), schedule.func)
    schedule.transform_layout(block, f"{buffer}_local", tiled(schedule.func, buffer))
    assert_same_results(small(name), schedule.func)
    assert schedule.func.buffers == small(name).buffers
    schedule.lower()


@pytest.mark.parametrize(
    ("name", "block", "read", "written"),
    [("conv2d_nhwc", "conv2d_nhwc", "W", "conv2d_nhwc"), ("dense", "T_matmul_NT", "B", "T_matmul_NT")],
)
def test_operators_of_full_size_are_proved(name: str, block: str, read: str, written: str) -> None:
    """The size of an operator makes no difference to the proof."""
    schedule = Schedule(loads((OPERATORS / f"{name}.py").read_text(encoding="utf-8"), f"{name}.py"))
    schedule.cache_read(block, read)
    schedule.cache_write(block, written)
    schedule.transform_layout(block, f"{read}_global", tiled(schedule.func, read), 0.0)
    assert all(step.status is Status.PROVED for step in schedule.steps)


@one_in(4)
@pytest.mark.parametrize("size", [0, 1, 7, 8])
def test_caches_for_every_size(size: int) -> None:
    """Extents may be symbols; the copy runs over them."""
    text = (OPERATORS / "sym_row_sum.py").read_text(encoding="utf-8")
    # Of no terms there is no sum, and nothing to copy out.
    func = loads(text.replace("    for ax0", "    T.evaluate(T.assume(m >= 1))\n    for ax0"), "sym_row_sum.py")
    schedule = Schedule(func)
    schedule.cache_read("A_red", "A", "local")
    schedule.cache_write("A_red", "A_red", "local")
    schedule.transform_layout("A_red", "A_local", "lambda i, j: [j//4, i, j%4]")
    schedule.lower()
    for step in (schedule.func, schedule.lowered):
        assert_same_results(func, step, symbols={"n": size, "m": 5})


def test_the_text_of_a_cache_read() -> None:
    """The copy stands in a block of its own before the nest, and is allocated where the function allocates; parameters
    must be apart.
    """
    assert print_func(CacheRead("second", "B", "local").propose(two_stages()).new) == print_func(
        program("""def main(A: T.Buffer((16, 12), "int32"), C: T.Buffer((16, 12), "int32")):
    T.func_attr({"layoutproof.apart": True})
    B = T.sblock_alloc_buffer((16, 12), "int32")
    B_local = T.sblock_alloc_buffer((16, 12), "int32", scope="local")
    for i, j in T.grid(16, 12):
        with T.sblock("first"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj] + 1
    for ax0, ax1 in T.grid(16, 12):
        with T.sblock("B_local"):
            v0, v1 = T.axis.remap("SS", [ax0, ax1])
            T.reads(B[v0, v1])
            T.writes(B_local[v0, v1])
            B_local[v0, v1] = B[v0, v1]
    for i, j in T.grid(16, 12):
        with T.sblock("second"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B_local[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = B_local[vi, vj] * 2
""")
    )


def running_sum_in_root() -> PrimFunc:
    """A sum with an init, its function without allocations."""
    return program("""def main(A: T.Buffer((14, 5), "int32"), B: T.Buffer((14,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i, k in T.grid(14, 5):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi, vk])
            T.writes(B[vi])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
""")


def test_the_text_of_a_cache_write() -> None:
    """Init and update go to the cache, which is copied after the nest."""
    assert print_func(CacheWrite("sum", "B").propose(running_sum_in_root()).new) == print_func(
        program("""def main(A: T.Buffer((14, 5), "int32"), B: T.Buffer((14,), "int32")):
    T.func_attr({"tirx.noalias": True})
    B_global = T.sblock_alloc_buffer((14,), "int32")
    for i, k in T.grid(14, 5):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi, vk])
            T.writes(B_global[vi])
            with T.init():
                B_global[vi] = 0
            B_global[vi] = B_global[vi] + A[vi, vk]
    for ax0 in range(14):
        with T.sblock("B_global"):
            v0 = T.axis.spatial(14, ax0)
            T.reads(B_global[v0])
            T.writes(B[v0])
            B[v0] = B_global[v0]
""")
    )


def test_only_what_is_touched_is_copied() -> None:
    """A pool that never reads the last row and column copies neither."""
    schedule = Schedule(small("max_pool2d"))
    schedule.cache_read("pool_max", "pad_temp")
    assert "for ax0_1, ax1_1, ax2_1, ax3_1 in T.grid(1, 8, 7, 7):" in schedule.script()


def halves() -> PrimFunc:
    """An array whose halves are written by two blocks, the second from the first."""
    return program("""def main(A: T.Buffer((12,), "float32"), B: T.Buffer((12,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(6):
        with T.sblock("first"):
            v = T.axis.spatial(6, i)
            B[v] = A[v] * T.float32(2)
    for i in range(6):
        with T.sblock("second"):
            v = T.axis.spatial(6, i)
            B[v + 6] = B[v] + A[v + 6]
""")


@pytest.mark.parametrize(
    "step", [CacheWrite("first", "B"), CacheWrite("second", "B"), CacheRead("second", "B"), CacheRead("second", "A")]
)
def test_the_rest_of_a_buffer_is_left_to_others(step: Pass) -> None:
    """A block that writes half a buffer has that half copied, or the copy would overwrite the other; reads of its own
    are its own.
    """
    if step == CacheWrite("second", "B"):
        # It reads what the other block wrote: of that its own buffer knows nothing.
        with pytest.raises(IllegalTransform, match="is read at"):
            Schedule(halves()).apply(step)
        return
    schedule = Schedule(halves())
    schedule.apply(step)
    assert "in range(6):" in schedule.script()
    assert_same_results(halves(), schedule.func)


@one_in(4)
def test_the_whole_function_may_work_on_copies() -> None:
    """With the block `root`, the copies are at the start and at the end of the body; also without blocks."""
    for func, suffix in ((small("softmax"), ""), (Schedule(small("softmax")).lower(), "_flat")):
        schedule = Schedule(func)
        schedule.cache_read("root", f"A{suffix}", "local")
        schedule.cache_write("root", f"T_softmax_norm{suffix}", "local")
        assert_same_results(small("softmax"), schedule.func)
        schedule.lower()


def test_a_block_inside_a_block_has_its_copy_there() -> None:
    """The cache of an inner block is made anew in each run of the outer one."""
    func = program("""def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(4):
        with T.sblock("row"):
            vi = T.axis.spatial(4, i)
            T.reads(A[vi, 0:8])
            T.writes(B[vi, 0:8])
            for j in range(8):
                with T.sblock("cell"):
                    vj = T.axis.spatial(8, j)
                    B[vi, vj] = A[vi, vj] + T.float32(1)
""")
    schedule = Schedule(func)
    schedule.cache_read("cell", "A")
    schedule.cache_write("cell", "B")
    outer = next(n for n in walk(schedule.func.body) if isinstance(n, Block) and n.name == "row")
    assert [b.name for b in outer.alloc_buffers] == ["A_global", "B_global"]
    # Of A and B the row of this run is touched, which is said by the block's variable.
    assert schedule.script().count("in T.grid(1, 8):") == 2 and "T.axis.spatial(4, ax0 + vi)" in schedule.script()
    assert_same_results(func, schedule.func)


def test_padding_without_a_contract_is_not_copied() -> None:
    """Padding that must not be touched is not copied."""
    schedule = Schedule(small("row_sum"))
    schedule.transform_layout("A_red", "A", "lambda i, j: [i, j//4, j%4]")
    schedule.cache_read("A_red", "A")
    assert "T.where(not (ax1 == 3 and ax2 >= 2))" in schedule.script()
    assert_same_results(small("row_sum"), schedule.func)


def test_padding_that_is_owed_is_left_to_its_stage() -> None:
    """The stage that fills an output's padding stays; the copy has the elements."""
    schedule = Schedule(small("relu_nhwc"))
    schedule.transform_layout("compute", "compute", "lambda n, h, w, c: [n, c//4, h, w, c%4]", 0.0)
    schedule.cache_write("compute", "compute")
    assert "T.where(not (ax1 == 1 and ax4 >= 2))" in schedule.script()
    assert_same_results(small("relu_nhwc"), schedule.func)


def test_a_sum_runs_over_the_padding_of_its_cache() -> None:
    """The cache of an input is padded with zeros, and the guard goes: no caller knows of any padding."""
    schedule = Schedule(small("row_sum"), interface="fixed")
    schedule.cache_read("A_red", "A")
    schedule.transform_layout("A_red", "A_global", "lambda i, j: [i, j//4, j%4]", 0.0)
    schedule.sequential_buffer_access("A_red", "A_global")
    schedule.remove_branching_through_overcompute("A_red")
    assert_same_results(small("row_sum"), schedule.func)


@one_in(4)
@pytest.mark.parametrize("seed", range(12))
def test_random_nests_compute_the_same(seed: int) -> None:
    """Sums with loops split and ordered at random: whatever is cached, and however the cache is stored."""
    rng = Random(f"caches {seed}")
    func = random_reduction(rng)
    schedule = Schedule(func)
    steps: list[Pass] = [CacheRead("sum", "A", "local"), CacheWrite("sum", "B", "local")]
    for step in rng.sample(steps, rng.randint(1, 2)):
        schedule.apply(step)
        buffer = f"{'A' if isinstance(step, CacheRead) else 'B'}_local"
        if rng.random() < 0.7:
            schedule.transform_layout("root", buffer, random_tiles(rng, find_buffer(schedule.func, buffer).rank))
    assert_same_results(func, schedule.func)


@pytest.mark.parametrize("changes", [
    (("B_local[v0, v1] = B[v0, v1]", "B_local[v0, v1] = B[v0, (v1 + 1) % 12]"),),
    (("for ax0, ax1 in T.grid(16, 12)", "for ax0, ax1 in T.grid(16, 11)"),),
    (("C[vi, vj] = B_local[vi, vj] * 2", "C[vi, vj] = B_local[vi, 11 - vj] * 2"),),
    (("B_local[v0, v1] = B[v0, v1]", "B_local[v0, v1] = B[v0, v1] + 0 * B[v0, 0] + 1"),),
])  # fmt: skip
def test_wrong_reads_are_not_proved(changes: tuple[tuple[str, str], ...]) -> None:
    """A copy of other cells, a copy that is short, and a copy that is none are seen."""
    assert not is_proved(tampered(CacheRead("second", "B", "local").propose(two_stages()), *changes))


@pytest.mark.parametrize("changes", [
    (("B[v0] = B_global[v0]", "B[v0] = B_global[13 - v0]"),),
    (("for ax0 in range(14)", "for ax0 in range(13)"),),
    (("B_global[vi] = 0", "B[vi] = 0"),),
    (("B_global[vi] = B_global[vi] + A", "B_global[vi] = B[vi] + A"),),
])  # fmt: skip
def test_wrong_writes_are_not_proved(changes: tuple[tuple[str, str], ...]) -> None:
    """Results that arrive elsewhere or not at all, and an accumulator that is left behind, are seen."""
    assert not is_proved(tampered(CacheWrite("sum", "B").propose(running_sum_in_root()), *changes))


def test_a_trace_gives_the_same_schedule(tmp_path: Path) -> None:
    """Both steps stand in a trace with their options, the scope too."""
    schedule = Schedule(small("matmul"))
    schedule.cache_read("T_matmul", "A", "local")
    schedule.cache_write("T_matmul", "T_matmul")
    schedule.save_trace(tmp_path / "trace.json")
    assert Schedule.load(small("matmul"), tmp_path / "trace.json").func == schedule.func
    for step in schedule.steps:
        assert type(step.transform).from_arguments(step.transform.arguments()) == step.transform


def test_parameters_that_may_overlap_are_asked_not_to() -> None:
    """Without a promise that parameters do not overlap, the step asks every call for one, and the next has it."""
    schedule = Schedule(running_sum())
    schedule.cache_write("sum", "B")
    assert "layoutproof.apart" in schedule.script()
    assert "precondition: parameters do not overlap" in [v.claim.text for v in schedule.steps[0].verdicts]
    schedule.cache_read("B_global", "B_global", "local")
    assert "precondition: parameters do not overlap" not in [v.claim.text for v in schedule.steps[1].verdicts]


def test_assumptions_go_on_to_speak_of_the_parameter() -> None:
    """What a caller promised of its buffer is no promise about a copy; what is known of the copy follows from how it
    was made.
    """
    schedule = Schedule(small("row_sum"))
    schedule.transform_layout("A_red", "A", "lambda i, j: [i, j//4, j%4]", 0.0)
    schedule.cache_read("root", "A", "local")
    assert "A[v_p0, v_p1, v_p2] == T.float32(0.0)" in schedule.script()
    schedule.sequential_buffer_access("A_red", "A_local")
    schedule.remove_branching_through_overcompute("A_red")
    assert_same_results(small("row_sum"), schedule.func)


def test_an_output_in_texture_axes() -> None:
    """The copy of an output is stored with its rows in tiles on the second axis; its padding is filled, the output is
    as it was.
    """
    func = program("""def main(A: T.Buffer((33, 128), "float32"), B: T.Buffer((33, 128), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(33, 128):
        with T.sblock("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
""")
    schedule = Schedule(func, interface="fixed")
    schedule.cache_write("copy", "B")
    schedule.transform_layout("copy", "B_global", "lambda x, y: [x//32, y, AXIS_SEPARATOR, x%32]", 0.0)
    assert "T.where(p0 == 1 and p2 >= 1)" in schedule.script()
    assert "T.alloc_buffer((256, 32)" in print_func(schedule.lower())
    assert_same_results(func, schedule.func)


@one_in(4)
@pytest.mark.parametrize("size", [0, 1, 5, 9])
def test_padding_of_two_transforms_for_every_size(size: int) -> None:
    """Where two transforms left padding without a contract, neither is copied, whatever the extents."""
    text = (OPERATORS / "sym_row_sum.py").read_text(encoding="utf-8")
    # Of no terms there is no sum, and nothing to copy out.
    func = loads(text.replace("    for ax0", "    T.evaluate(T.assume(m >= 1))\n    for ax0"), "sym_row_sum.py")
    schedule = Schedule(func)
    schedule.transform_layout("A_red", "A", "lambda i, j: [i, j//4, j%4]")
    schedule.transform_layout("A_red", "A", "lambda i, j, k: [i//8, j, i%8, k]")
    schedule.cache_read("A_red", "A")
    assert "T.where(not (8 * ax0_1 + ax2 >= n or 4 * ax1 + ax3 >= m))" in schedule.script()
    assert_same_results(func, schedule.func, symbols={"n": size, "m": 5})


def test_what_only_an_init_writes_is_copied_too() -> None:
    """A branch that skips the updates of some results does not skip their init."""
    func = program("""def main(A: T.Buffer((14, 5), "int32"), B: T.Buffer((14,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i, k in T.grid(14, 5):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0
            if vi < 10:
                B[vi] = B[vi] + A[vi, vk]
""")
    schedule = Schedule(func)
    schedule.cache_write("sum", "B")
    assert "for ax0 in range(14):" in schedule.script()
    assert_same_results(func, schedule.func)


def test_copies_of_copies_are_followed() -> None:
    """A copy of copies has the first one's value."""
    schedule, buffer = Schedule(small("transpose")), "A"
    for scope in ("a", "b", "c", "d", "e"):
        schedule.cache_read("T_transpose", buffer, scope)
        buffer = f"{buffer}_{scope}"
    assert_same_results(small("transpose"), schedule.func)
