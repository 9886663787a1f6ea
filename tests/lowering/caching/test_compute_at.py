"""Blocks that move into loops of others, and blocks that are computed where their values are used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.lowering.programs import program
from tests.shares import one_in

from layoutproof.ir.interp.run import run
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.verify.verdict.verdict import Status

THREE = """def main(a: T.handle, c: T.handle):
    T.func_attr({"tirx.noalias": True})
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n * 4 + 2, m), "float32")
    C = T.match_buffer(c, (n * 4, m), "float32")
    B = T.alloc_buffer((n * 4 + 2, m), "float32")
    D = T.alloc_buffer((n * 4, m), "float32")
    for i, j in T.grid(n * 4 + 2, m):
        with T.block("twice"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(n * 4, m):
        with T.block("three"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = B[vi, vj] + B[vi + 1, vj] + B[vi + 2, vj]
    for i, j in T.grid(n * 4, m):
        with T.block("less"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = D[vi, vj] - A[vi, vj]
"""


def a_run(schedule: Schedule) -> bool:
    """Whether the schedule's program computes on small data what its original does."""
    a = np.random.default_rng(0).integers(-9, 9, (10, 3)).astype(np.float32)
    arguments = {"A": a, "n": 2, "m": 3}
    return bool((run(schedule.func, arguments)["C"] == run(schedule.original, arguments)["C"]).all())


@pytest.fixture
def schedule() -> Schedule:
    """Three blocks in a row, the second one with a window of three rows."""
    return Schedule(program(THREE))


def test_a_block_computes_what_one_iteration_reads(schedule: Schedule) -> None:
    """The window of three rows, in a loop over rows: extents and bindings say so."""
    schedule.compute_at("twice", "three", "i")
    assert schedule.get_loops("twice") == ("i", "ax0", "ax1")
    text = schedule.script()
    assert "for ax0, ax1 in T.grid(3, m):" in text
    assert "vi = T.axis.spatial(n * 4 + 2, i + ax0)" in text
    assert a_run(schedule)


def test_a_tile_of_the_reader_takes_a_tile_of_the_writer(schedule: Schedule) -> None:
    """Of four rows six are needed; deeper, the innermost loop needs three cells."""
    schedule.split("three", "i", (None, 4))
    schedule.compute_at("twice", "three", "i_0")
    assert "for ax0, ax1 in T.grid(6, m):" in schedule.script()
    schedule.compute_at("twice", "three", "j")
    assert schedule.get_loops("twice") == ("i_0", "i_1", "j", "ax0")
    assert a_run(schedule)


def test_a_reader_moves_after_its_writer(schedule: Schedule) -> None:
    """It uses what the iteration leaves."""
    schedule.reverse_compute_at("less", "three", 0)
    assert schedule.get_loops("less") == ("i", "ax1")
    schedule.reverse_compute_at("less", "three", 1)
    assert schedule.get_loops("less") == ("i", "j")
    assert a_run(schedule)


def test_a_reader_that_needs_more_than_an_iteration_leaves_is_refused(schedule: Schedule) -> None:
    """Rows that are written later are not there."""
    schedule.reverse_compute_at("less", "three", 0)
    with pytest.raises(IllegalTransform) as refused:
        schedule.reverse_compute_at("three", "twice", 0)
    assert refused.value.diagnostics[0].code == "LP344"


def test_blocks_are_inlined_both_ways(schedule: Schedule) -> None:
    """Into their readers, and into the one writer of what they read; the buffers are gone."""
    schedule.compute_inline("twice")
    schedule.reverse_compute_inline("less")
    text = schedule.script()
    assert "alloc_buffer" not in text
    assert text.count("sblock(") == 1
    assert a_run(schedule)


def test_a_reader_of_fewer_cells_is_guarded() -> None:
    """Where the writer makes more than is read, the rest is not stored."""
    short = Schedule(
        program("""def main(A: T.Buffer((8,), "float32"), C: T.Buffer((5,), "float32")):
    T.func_attr({"tirx.noalias": True})
    B = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("twice"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(5):
        with T.block("cut"):
            vi = T.axis.spatial(5, i)
            C[vi] = B[vi]
""")
    )
    assert short.reverse_compute_inline("cut").status is Status.PROVED
    assert "if vi < 5:" in short.script()


def test_a_writer_beyond_what_is_read_is_guarded() -> None:
    """A box that leaves the buffer is cut by a condition on the block."""
    cut = Schedule(
        program("""def main(A: T.Buffer((10,), "float32"), C: T.Buffer((10,), "float32")):
    T.func_attr({"tirx.noalias": True})
    B = T.alloc_buffer((10,), "float32")
    for i in range(10):
        with T.block("twice"):
            vi = T.axis.spatial(10, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(10):
        with T.block("copy"):
            vi = T.axis.spatial(10, i)
            C[vi] = B[vi]
""")
    )
    cut.split("copy", "i", (None, 4))
    cut.compute_at("twice", "copy", "i_0")
    assert cut.steps[-1].status is Status.PROVED
    assert "T.where(i_0 * 4 + ax0 < 10)" in cut.script()


ODD = """def main(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32"), E: T.Buffer((8, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    B = T.alloc_buffer((8, 8), "float32")
    D = T.alloc_buffer((8, 8), "float32")
    for i, j in T.grid(8, 8):
        with T.block("out"):
            vi, vj = T.axis.remap("SS", [i, j])
            E[vi, vj] = A[vi, vj]
    for i, j in T.grid(8, 8):
        with T.block("turned"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[7 - vi, vj] = A[vi, vj]
    for i, j in T.grid(8, 8):
        with T.block("read"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = B[vi, vj] + E[vi, vj]
    for i, j in T.grid(8, 8):
        with T.block("last"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = D[vi, vj] + B[vi, vj] + D[vj, vi]
"""


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("compute_at", ("out", "read", 0), "LP344"),  # a parameter
        ("compute_at", ("turned", "last", 0), "LP344"),  # read elsewhere too
        ("compute_at", ("read", "read", 0), "LP344"),  # its own loop
        ("compute_at", ("none", "last", 0), "LP303"),
        ("compute_at", ("read", "last", "q"), "LP334"),
        ("reverse_compute_at", ("last", "out", 0), "LP344"),  # reads nothing that is written there
        ("reverse_compute_at", ("last", "read", 0), "LP344"),  # reads D at two places
        ("compute_inline", ("out",), "LP354"),
        ("compute_inline", ("turned",), "LP344"),  # stored at a computed index
        ("compute_inline", ("none",), "LP303"),
        ("reverse_compute_inline", ("last",), "LP344"),
        ("reverse_compute_inline", ("read",), "LP344"),  # B has two readers, E is a parameter
        ("rfactor", ("read", 0), "LP344"),
        ("storage_align", ("B", 0, 0), "LP313"),
        ("storage_align", ("B", 1, 4), "LP313"),
        ("storage_align", ("A", 0, 4), "LP354"),
        ("set_scope", ("C", "shared"), "LP354"),
    ],
)
def test_what_stands_in_the_way_is_said(name: str, arguments: tuple[Any, ...], code: str) -> None:
    """No step is kept, and the reason has its code."""
    schedule = Schedule(program(ODD))
    with pytest.raises(IllegalTransform) as refused:
        getattr(schedule, name)(*arguments)
    assert refused.value.diagnostics[0].code == code
    assert schedule.steps == ()


def test_padding_of_a_row_is_proved_and_its_length_right() -> None:
    """Steps along the axis are what was asked for, modulo the factor; cells keep their indices."""
    for axis, factor, offset, shape in [(0, 32, 1, "(8, 33)"), (0, 4, 3, "(8, 11)"), (0, 8, 0, "(8, 8)")]:
        schedule = Schedule(program(ODD))
        assert schedule.storage_align("D", axis, factor, offset).status is Status.PROVED
        assert f"D = T.alloc_buffer({shape}, " in schedule.script()
    with pytest.raises(IllegalTransform, match="no constant lengths"):
        Schedule(program(THREE)).storage_align("D", 0, 32, 1)


SUM = """def main(a: T.handle, b: T.handle):
    T.func_attr({"tirx.noalias": True})
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m * 8), "DTYPE")
    B = T.match_buffer(b, (n,), "DTYPE")
    T.evaluate(T.assume(m >= 1))
    for i, k in T.grid(n, m * 8):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.DTYPE(START)
            B[vi] = B[vi] OP A[vi, vk]
"""


@one_in(7)
@pytest.mark.parametrize(("dtype", "fast_math"), [("int32", set()), ("float32", {"reassoc"})])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("loop", ["k_0", "k_1"])
def test_a_reduction_in_two_stages(dtype: str, fast_math: set[str], axis: int, loop: str) -> None:
    """Integers without an assumption, floats regrouped; the loop of the first stage may then run over threads."""
    schedule = Schedule(program(SUM.replace("DTYPE", dtype).replace("START", "0").replace("OP", "+")))
    schedule.split("sum", "k", (None, 8))
    step = schedule.rfactor("sum", loop, axis)
    assert {name for verdict in step.verdicts for name in verdict.strictness} == fast_math
    schedule.bind("sum_rf", "i", "blockIdx.x")
    schedule.bind("sum_rf", loop, "threadIdx.x")
    a = np.arange(48).reshape(3, 16).astype(dtype)
    assert (run(schedule.func, {"A": a, "n": 3, "m": 2})["B"] == a.sum(axis=1)).all()


def test_partial_results_that_do_not_begin_neutral_are_refused() -> None:
    """Each of them would bring the start once more."""
    schedule = Schedule(program(SUM.replace("DTYPE", "int32").replace("START", "1").replace("OP", "+")))
    schedule.split("sum", "k", (None, 8))
    with pytest.raises(IllegalTransform) as refused:
        schedule.rfactor("sum", "k_1", 0)
    assert refused.value.status is Status.REFUTED


def test_partial_results_in_registers_are_joined_over_threads() -> None:
    """Each thread sums a part of a row in memory of its own, and all threads join their parts."""
    schedule = Schedule(program(SUM.replace("DTYPE", "int32").replace("START", "0").replace("OP", "+")))
    schedule.split("sum", "k", (None, 8))
    schedule.rfactor("sum", "k_1", 0)
    schedule.set_scope("B_rf", "local")
    outer, inner = schedule.get_loops("sum")
    schedule.compute_at("sum_rf", "sum", inner)
    schedule.bind("sum", outer, "blockIdx.x")
    schedule.bind("sum", inner, "threadIdx.x")
    assert {step.status for step in schedule.steps} == {Status.PROVED}
    a = np.arange(48, dtype=np.int32).reshape(3, 16)
    assert (run(schedule.func, {"A": a, "n": 3, "m": 2})["B"] == a.sum(axis=1)).all()
