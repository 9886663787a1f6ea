"""The roadmap's examples as it prints them, without blocks: layouts, loops that follow them, and guards that go, before
and after.
"""

from __future__ import annotations

import pytest
from tests.lowering.small_operators import assert_same_results
from tests.shares import one_in

from layoutproof.ir.script.reader import loads
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.lowering.schedule.trace import program_text
from layoutproof.verify.verdict.verdict import Status

ROW_SUM = """@T.prim_func(s_tir=True)
def row_summation(A: T.Buffer((16, 14), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        B[i] = T.float32(0.0)
        for j in range(14):
            B[i] = B[i] + A[i, j]
"""
FOLLOWED = """    for i in range(16):
        B[i] = T.float32(0.0)
        for j_0, j_1 in T.grid(4, 4):
            if j_0 * 4 + j_1 < 14:
                B[i] = B[i] + A[i, (j_0 * 4 + j_1) // 4, (j_0 * 4 + j_1) % 4]
"""
BRANCH_FREE = """    for i in range(16):
        B[i] = T.float32(0.0)
        for j_0, j_1 in T.grid(4, 4):
            B[i] = B[i] + A[i, j_0, j_1]
"""
DOUBLE = """@T.prim_func(s_tir=True)
def double(A: T.Buffer((14,), "int32"), B: T.Buffer((14,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        B[i] = 2 * A[i]
"""
DOUBLED = """@T.prim_func(s_tir=True)
def double(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i_0, i_1 in T.grid(4, 4):
        B[i_0, i_1] = 2 * A[i_0, i_1]
"""
ROWS = "lambda i: [i//4, i%4]"


@one_in(9)
def test_the_row_summation() -> None:
    """Rows of 14 as 4 by 4, padded with zeros: the guard that follows the layout, then none; bit for bit."""
    func = loads(ROW_SUM)
    schedule = Schedule(func)
    schedule.transform_layout("root", "A", "lambda i, j: [i, j//4, j%4]", 0.0)
    schedule.sequential_buffer_access("root", "A")
    assert program_text(schedule.func).endswith(FOLLOWED)
    report = schedule.pad_value_search("root", "A")
    assert [guard.split(" (")[0] for guard in report.guards] == ["`j_0 * 4 + j_1 < 14`"]
    schedule.remove_branching_through_overcompute("root")
    schedule.simplify()
    assert program_text(schedule.func).endswith(BRANCH_FREE)
    assert {word for step in schedule.steps for v in step.verdicts for word in v.strictness} == set()
    assert_same_results(func, schedule.func, {"A": [0.0]})


def test_element_wise_over_undefined_padding() -> None:
    """The stage that leaves the output's padding undefined stands in a block; the loops around it are followed all the
    same.
    """
    func = loads(DOUBLE)
    schedule = Schedule(func)
    schedule.transform_layout("root", "A", ROWS, "T.undef()")
    schedule.transform_layout("root", "B", ROWS, "T.undef()")
    schedule.sequential_buffer_access("root", "B")
    schedule.remove_branching_through_overcompute("root", guards=[0])
    schedule.lower_blocks()
    schedule.simplify()
    schedule.remove_assume()
    schedule.remove_store_undef()
    assert program_text(schedule.func) == DOUBLED
    assert_same_results(func, schedule.func, {"A": [7]})


@pytest.mark.parametrize("pad", [None, 0, "T.undef()"])
def test_a_producer_alone(pad: object) -> None:
    """A fill of 14 elements follows its buffer whatever is promised of the padding."""
    func = loads("""@T.prim_func(s_tir=True)
def fill(A: T.Buffer((14,), "int32")):
    for i in range(14):
        A[i] = 42
""")
    schedule = Schedule(func)
    schedule.transform_layout("root", "A", ROWS, pad)
    assert schedule.sequential_buffer_access("root", "A").status is Status.PROVED
    assert "if i_0 * 4 + i_1 < 14:\n            A[" in schedule.script()
    assert_same_results(func, schedule.func)
