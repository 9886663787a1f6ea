"""Barriers where threads meet in shared memory, and programs in which they are missing."""

from __future__ import annotations

import pytest
from tests.lowering.programs import program

from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.verify.verdict.verdict import Status

HEAD = """def main(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4, 8), "int32")):
    T.func_attr({"tirx.noalias": True})
    S = T.alloc_buffer((8,), "int32", scope="shared")
"""
ROTATED = HEAD + (
    """    for t in T.thread_binding(8, thread="threadIdx.x"):
        for r in range(4):
            with T.block("fetch"):
                vr, vt = T.axis.remap("SS", [r, t])
                S[vt] = A[vr, vt]
            with T.block("rotate"):
                vr, vt = T.axis.remap("SS", [r, t])
                B[vr, vt] = S[(vt + 1) % 8]
"""
)


def lines(schedule: Schedule) -> list[str]:
    """What the kernel does: barriers, and stores by buffer."""
    found = []
    for line in schedule.script().splitlines():
        if "tvm_storage_sync" in line:
            found.append("sync")
        elif " = " in line and "[" in line.split(" = ")[0]:
            found.append(line.split("[")[0].strip())
    return found


def test_a_barrier_after_each_store_and_before_the_next_one() -> None:
    """What an iteration reads is overwritten by the next one."""
    schedule = Schedule(program(ROTATED))
    assert schedule.thread_sync().status is Status.PROVED
    assert lines(schedule) == ["sync", "S", "sync", "B"]


def test_blocks_are_lowered_with_the_barriers() -> None:
    """Without blocks a kernel has the barriers of its text, so they are put in before; without them it has races."""
    schedule = Schedule(program(ROTATED))
    schedule.thread_sync()
    assert schedule.lower_blocks().status is Status.PROVED
    assert lines(schedule) == ["sync", "S", "sync", "B"]
    early = Schedule(program(ROTATED))
    with pytest.raises(IllegalTransform) as refused:
        early.lower_blocks()
    assert "LP220" in {diagnostic.code for diagnostic in refused.value.diagnostics}


def test_barriers_that_are_there_are_kept() -> None:
    """A kernel with one is taken to have all."""
    schedule = Schedule(program(ROTATED))
    schedule.thread_sync()
    assert schedule.thread_sync().rewrite.new == schedule.steps[0].rewrite.new


def test_a_thread_that_reads_what_it_wrote_needs_none() -> None:
    """TVM puts one there all the same, where it is not known to be the same cell, and so does this."""
    schedule = Schedule(program(ROTATED.replace("(vt + 1) % 8", "vt")))
    assert schedule.thread_sync().status is Status.PROVED


TWO_STORES = HEAD + (
    """    for t in T.thread_binding(8, thread="threadIdx.x"):
        with T.block("one"):
            vt = T.axis.spatial(8, t)
            S[vt] = A[0, vt]
        with T.block("two"):
            vt = T.axis.spatial(8, t)
            S[WHERE] = A[1, vt]
        with T.block("out"):
            vt = T.axis.spatial(8, t)
            B[0, vt] = S[7 - vt]
"""
)
SERIAL = TWO_STORES.replace('T.thread_binding(8, thread="threadIdx.x")', "range(8)")


def test_two_stores_to_one_cell_are_no_reason_for_a_barrier() -> None:
    """TVM puts none between statements that only write, so that threads that store to one cell race."""
    apart = Schedule(program(TWO_STORES.replace("WHERE", "vt")))
    assert apart.thread_sync().status is Status.PROVED
    assert lines(apart) == ["S", "S", "sync", "B"]
    crossing = Schedule(program(TWO_STORES.replace("WHERE", "7 - vt")))
    with pytest.raises(IllegalTransform) as refused:
        crossing.thread_sync()
    assert {d.code for d in refused.value.diagnostics} == {"LP220"}


BRANCH = HEAD + (
    """    for t in T.thread_binding(8, thread="threadIdx.x"):
        S[t] = A[0, t]
        if CONDITION:
            B[1, t] = S[(t + 1) % 8]
            S[(t + 3) % 8] = 5
        B[0, t] = S[7 - t]
"""
)


def test_a_barrier_stands_where_all_threads_come() -> None:
    """In a branch that all threads take, or before one that only some take; and there the rest is a race."""
    schedule = Schedule(program(BRANCH.replace("CONDITION", "A[0, 0] < 3")))
    with pytest.raises(IllegalTransform):
        schedule.thread_sync()
    schedule = Schedule(program(BRANCH.replace("CONDITION", "t < 3")))
    with pytest.raises(IllegalTransform):
        schedule.thread_sync()


def test_blocks_elsewhere_are_no_barriers() -> None:
    """A kernel of plain loops has the barriers of its text, whatever else the function has."""
    beside = """    for i in range(8):
        with T.block("beside"):
            vi = T.axis.spatial(8, i)
            B[2, vi] = A[2, vi]
"""
    plain = (
        HEAD
        + beside
        + (
            """    for t in T.thread_binding(8, thread="threadIdx.x"):
        S[t] = A[0, t]
        B[0, t] = S[7 - t]
"""
        )
    )
    with pytest.raises(IllegalTransform) as refused:
        Schedule(program(plain)).split("beside", "i", (2, None))
    assert "LP220" in {diagnostic.code for diagnostic in refused.value.diagnostics}
    with_barrier = plain.replace("        B[0, t]", '        T.tvm_storage_sync("shared")\n        B[0, t]')
    assert Schedule(program(with_barrier)).split("beside", "i", (2, None)).status is Status.PROVED
