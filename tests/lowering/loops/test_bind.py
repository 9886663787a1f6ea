"""Loops that are bound to thread axes, and steps of a schedule on the kernels that then are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.lowering.programs import program

from layoutproof.ir.interp.run import run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.compare.compare_programs import compare
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.verify.values.fast_math import IEEE
from layoutproof.verify.verdict.verdict import Status

TURNED = """def main(a: T.handle, b: T.handle):
    T.func_attr({"tirx.noalias": True})
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n * 8, m * 8), "float32")
    B = T.match_buffer(b, (m * 8, n * 8), "float32")
    for i, j in T.grid(n * 8, m * 8):
        with T.block("turn"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vj, vi] = A[vi, vj]
"""

SUM = """def main(a: T.handle, b: T.handle):
    T.func_attr({"tirx.noalias": True})
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "DTYPE")
    B = T.match_buffer(b, (n,), "DTYPE")
    for i, k in T.grid(n, m):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.DTYPE(0)
            B[vi] = B[vi] + A[vi, vk]
"""


def steps(func: PrimFunc, *steps: tuple[str, tuple[Any, ...]]) -> Schedule:
    """The schedule of these steps, each of which is proved."""
    schedule = Schedule(func)
    for name, arguments in steps:
        assert getattr(schedule, name)(*arguments).status is Status.PROVED
    return schedule


def test_bound_loops_run_as_threads_for_all_sizes() -> None:
    """The kernel is proved step by step, says its axes, and runs as the loops did."""
    schedule = steps(
        program(TURNED),
        ("split", ("turn", "i", (None, 8))),
        ("split", ("turn", "j", (None, 8))),
        ("reorder", ("turn", ("i_0", "j_0", "i_1", "j_1"))),
        ("bind", ("turn", "i_0", "blockIdx.y")),
        ("bind", ("turn", "j_0", "blockIdx.x")),
        ("bind", ("turn", "i_1", "vthread")),
        ("bind", ("turn", "j_1", "threadIdx.x")),
    )
    assert all(f'({n}, thread="{t}")' in schedule.script() for n, t in (("n", "blockIdx.y"), (8, "vthread")))
    a = np.arange(16 * 8, dtype=np.float32).reshape(16, 8)
    assert (run(schedule.func, {"A": a, "n": 2, "m": 1})["B"] == a.T).all()
    assert compare(schedule.original, schedule.func).status is Status.PROVED


def test_steps_after_a_loop_is_bound_are_proved() -> None:
    """Loops inside change as anywhere, and the next step is about the same kernel."""
    schedule = steps(
        program(SUM.replace("DTYPE", "float32")),
        ("bind", ("sum", "i", "blockIdx.x")),
        ("split", ("sum", "k", (None, 4))),
        ("unroll", ("sum", "k_1")),
        ("cache_read", ("sum", "A", "global")),
        ("decompose_reduction", ("sum", "k_0")),
    )
    assert all(not verdict.strictness for step in schedule.steps for verdict in step.verdicts)
    a = np.arange(21, dtype=np.float32).reshape(3, 7)
    assert (run(schedule.func, {"A": a})["B"] == a.sum(axis=1)).all()


def test_threads_that_join_floats_need_an_order_that_makes_no_difference() -> None:
    """A reduction over threads has no order: integers do not mind, floats take `reassoc` and `nsz`."""
    assert all(
        not v.strictness for v in Schedule(program(SUM.replace("DTYPE", "int32"))).bind("sum", "k", THREAD).verdicts
    )
    floats = program(SUM.replace("DTYPE", "float32"))
    used = {name for v in Schedule(floats).bind("sum", "k", THREAD).verdicts for name in v.strictness}
    assert used == {"reassoc", "nsz"}
    with pytest.raises(IllegalTransform, match="an order that is not fixed is not decided: that takes nsz, reassoc"):
        Schedule(floats, allowed=IEEE).bind("sum", "k", THREAD)


def test_blocks_of_the_grid_join_nothing() -> None:
    """They do not wait for one another; what is not understood is not refuted."""
    with pytest.raises(IllegalTransform, match="a reduction over the blocks of a grid") as refused:
        Schedule(program(SUM.replace("DTYPE", "int32"))).bind("sum", "k", "blockIdx.x")
    assert refused.value.status is Status.UNKNOWN


THREAD = "threadIdx.x"


def test_a_race_is_refused_with_two_threads_and_the_cell() -> None:
    """As in a parallel loop."""
    over = program("""def main(A: T.Buffer((9,), "int32"), B: T.Buffer((9,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[i] = A[i]
        B[i + 1] = A[i]
""")
    with pytest.raises(IllegalTransform, match=r"(?s)threadIdx_x = \d+ and write B.*threadIdx_x = \d+ touch one cell"):
        Schedule(over).bind("root", "i", THREAD)


@pytest.mark.parametrize(
    ("loop", "thread", "code"),
    [
        (2, "threadIdx.x", "LP343"),
        (2, "threadIdx.w", "LP343"),
        (2, "warp", "LP343"),
        (0, "threadIdx.y", "LP336"),
        (3, "threadIdx.y", "LP336"),
        (9, "threadIdx.y", "LP334"),
    ],
)
def test_loops_that_cannot_be_bound_are_named(loop: int, thread: str, code: str) -> None:
    """One of another length than its axis has, an axis that there is not, a loop that is bound or
    unrolled.
    """
    nests = program("""def main(A: T.Buffer((4, 8)), B: T.Buffer((4, 8)), C: T.Buffer((4, 8))):
    T.func_attr({"tirx.noalias": True})
    for b in T.thread_binding(1, thread="threadIdx.x"):
        for i in range(1):
            B[i, 0] = A[i, 0]
        for j in range(8):
            for u in T.unroll(4):
                C[u, j] = A[u, j]
""")
    with pytest.raises(IllegalTransform) as refused:
        Schedule(nests).bind("root", loop, thread)
    assert refused.value.diagnostics[0].code == code
