"""Orders that the dataflow forbids: the refusal names two accesses of one cell that would change places."""

from __future__ import annotations

import pytest
from tests.lowering.loops.cases import REFUSED
from tests.lowering.programs import program

from layoutproof.lowering.loops.dependence import broken_order
from layoutproof.lowering.loops.sequential_access import SequentialBufferAccess
from layoutproof.lowering.loops.tiling import Reorder, Split
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.verify.verdict.verdict import Status

BLOCKS = """def main(A: T.Buffer((16,), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((15,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, f in T.grid(14, 3):
        with T.sblock("cumulative"):
            vi, vf = T.axis.remap("SR", [i, f])
            B[vi + 1] = B[vi + 1] + (A[vi + vf] + B[vi]) * F[vf]
"""
WHAT = (("the store to", "i = 0, f = 1"), ("the load of", "i = 1, f = 0"))


@pytest.mark.parametrize("every", [False, True], ids=["14", "n"])
def test_a_cumulative_convolution_cannot_follow_its_input(every: bool) -> None:
    """Each element of the output feeds the next: walking by the input, one would be read before its sum is complete."""
    case = REFUSED["cumulative_by_its_input"]
    schedule = Schedule(case.program(None if every else case.sizes))
    with pytest.raises(IllegalTransform) as caught:
        schedule.sequential_buffer_access("root", "A")
    assert caught.value.status is Status.REFUTED and schedule.trace == []
    found = caught.value.diagnostics[0].help
    line = 6 if every else 5
    stored, loaded = (f"{what} B[1] (line {line}) at {where}" for what, where in WHAT)
    assert found == f"{stored} came before {loaded}, and would come after it"


def test_in_blocks_loops_are_named_too() -> None:
    """The loops of the old program say which instances, whatever the block calls its variables."""
    found = broken_order(SequentialBufferAccess("cumulative", "A").propose(program(BLOCKS)))
    assert found is not None and "at i = 0, f = 1 came before the load of B[1] (line 7) at i = 1, f = 0" in found


def test_sums_in_another_order_are_named_last() -> None:
    """Of a sum that only adds up in another order, the accumulator itself is all that there is to name."""
    func = program("""def main(A: T.Buffer((4, 5, 6), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, k, l in T.grid(4, 5, 6):
        with T.sblock("sum"):
            vi, vk, vl = T.axis.remap("SRR", [i, k, l])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk, vl]
""")
    found = broken_order(Reorder("sum", ("l", "k")).propose(func))
    assert found is not None and "B[" in found and "A[" not in found


def test_an_order_that_is_kept_breaks_nothing() -> None:
    """Splitting a loop leaves every access where it was; exchanging the loops of a copy moves no access before another
    of its cell.
    """
    case = REFUSED["cumulative_by_its_input"]
    assert broken_order(Split("root", "i", (None, 2)).propose(case.program(case.sizes))) is None
    copy = program("""def main(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
    for i, j in T.grid(4, 4):
        B[i, j] = A[i, j]
""")
    assert broken_order(Reorder("root", ("j", "i")).propose(copy)) is None


def test_between_two_stores() -> None:
    """Two statements of one nest: what the first stored for a later iteration of the second would come too late."""
    func = program("""def main(A: T.Buffer((5, 5), "int32"), B: T.Buffer((5, 5), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(4, 4):
        A[i, j + 1] = i
        B[i, j] = A[i - 1 + 1, j] + A[i + 1, j]
""")
    found = broken_order(Reorder("root", ("j", "i")).propose(func))
    assert found is not None
    assert found.startswith("the load of A[") and " came before the store to A[" in found


@pytest.mark.parametrize(
    "trace",
    [
        ["sequential_buffer_access", {"block": "root", "buffer": "A"}],
        ["reorder", {"block": "root", "loops": ["f", "i"]}],
    ],
)
def test_a_trace_is_told_too(trace: list[object]) -> None:
    """A refusal while a trace is replayed has the help that the schedule's method gives."""
    case = REFUSED["cumulative_by_its_input"]
    with pytest.raises(IllegalTransform) as caught:
        Schedule.replay(case.program(case.sizes), [trace])
    assert "came before" in str(caught.value.diagnostics[0].help)
