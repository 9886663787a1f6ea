"""`decompose_reduction`: an init in a block of its own, proved, for every size; and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lowering.loops.instances import check_theta
from tests.lowering.programs import program
from tests.random.nests import assert_same_sums

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp import run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.lowering.loops.decompose_reduction import DecomposeReduction
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.verify.verdict.verdict import Status

NOALIAS = 'T.func_attr({"tirx.noalias": True})'


def rows(loops: str, axis: str, where: str = "True", extra: str = "") -> PrimFunc:
    """A sum of six rows of eight, over the loops given, the reduce axis bound as given."""
    return program(f"""def main(A: T.Buffer((6, 8), "int32"), B: T.Buffer((6,), "int32")):
    {NOALIAS}
    {loops}
        with T.sblock("sum"):
            vi = T.axis.spatial(6, i)
            vk = T.axis.reduce(8, {axis})
            T.where({where})
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
{extra}""")


@pytest.mark.parametrize(
    ("loops", "axis", "where", "loop"),
    [
        ("for i, k in T.grid(6, 8):", "k", "True", "k"),
        ("for i, k in T.grid(6, 8):", "k", "True", "i"),
        ("for k, i in T.grid(8, 6):", "k", "True", "k"),
        ("for i, ko, ki in T.grid(6, 3, 3):", "ko * 3 + ki", "ko * 3 + ki < 8", "ko"),
        ("for i, ko, ki in T.grid(6, 3, 3):", "ko * 3 + ki", "ko * 3 + ki < 8 and i < 4", "ko"),
        ("for i, k in T.grid(6, 8):", "k", "i < 4", "k"),
        ("for i, k in T.grid(6, 8):", "k", "k >= 2", "k"),
    ],
)
def test_an_init_moves_before_its_loop(loops: str, axis: str, where: str, loop: str) -> None:
    """Whatever the order of the loops and the guards: proved, theta one to one, the same sums."""
    func = rows(loops, axis, where)
    schedule = Schedule(func)
    step = schedule.decompose_reduction("sum", loop)
    assert step.status is Status.PROVED
    check_theta(step.rewrite)
    assert "T.init()" not in schedule.script() and 'T.sblock("sum_init")' in schedule.script()
    assert_same_sums(func, schedule.func)


def test_a_start_that_comes_late_is_not_moved_before() -> None:
    """An init in the middle of its reduction throws away what was added before: moved to the front, it does not.
    Refuted by a run.
    """
    func = rows("for i, k in T.grid(6, 8):", "(k + 4) % 8")
    found = run(func, {"A": np.ones((6, 8), np.int32), "B": np.zeros(6, np.int32)})
    assert found["B"].tolist() == [4] * 6
    rewrite = DecomposeReduction("sum", "k").propose(func)
    assert "T.where" in print_func(rewrite.new)
    with pytest.raises(IllegalTransform) as caught:
        Schedule(func).decompose_reduction("sum", "k")
    assert caught.value.status is Status.REFUTED


def test_empty_reductions_keep_their_guard() -> None:
    """For any number of terms the new block runs where there is one."""
    func = program(f"""def main(A: T.Buffer(("n", "m"), "int32"), B: T.Buffer(("n",), "int32")):
    n, m = T.int32(), T.int32()
    {NOALIAS}
    for i, k in T.grid(n, m):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
""")
    schedule = Schedule(func)
    assert schedule.decompose_reduction("sum", "k").status is Status.PROVED
    assert "T.where(m >= 1)" in schedule.script()
    given = {"A": np.ones((3, 0), np.int32), "B": np.full(3, 7, np.int32)}
    assert run(schedule.func, given)["B"].tolist() == [7, 7, 7]


def test_a_reader_between_keeps_the_init() -> None:
    """A statement in the reduction that reads results before they are started would see them started."""
    func = program(f"""def main(A: T.Buffer((4,), "int32"), B: T.Buffer((1,), "int32"), P: T.Buffer((4,), "int32")):
    {NOALIAS}
    for k in range(4):
        P[k] = B[0]
        with T.sblock("sum"):
            vk = T.axis.reduce(4, k)
            with T.init():
                B[0] = 5
            B[0] = B[0] + A[vk]
""")
    with pytest.raises(IllegalTransform) as caught:
        Schedule(func).decompose_reduction("sum", "k")
    assert caught.value.status is Status.REFUTED


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("with T.sblock('sum'):\n            vk = T.axis.reduce(4, k)\n            B[0] = B[0] + A[vk]", "has no init"),
        (
            "x: T.int32 = A[k]\n        with T.sblock('sum'):\n            vk = T.axis.reduce(4, k)\n"
            "            with T.init():\n                B[0] = 0\n            B[0] = B[0] + x",
            "more than loops and branches",
        ),
        (
            "with T.sblock('sum'):\n            vk = T.axis.reduce(4, k)\n            T.where(A[k] > 0)\n"
            "            with T.init():\n                B[0] = 0\n            B[0] = B[0] + A[vk]",
            "data decides",
        ),
    ],
)
def test_refusals_say_why(text: str, message: str) -> None:
    """No init, a let on the way, a guard on data."""
    func = program(f"""def main(A: T.Buffer((4,), "int32"), B: T.Buffer((1,), "int32")):
    {NOALIAS}
    for k in range(4):
        {text}
""")
    with pytest.raises(LayoutproofError, match=message) as caught:
        DecomposeReduction("sum", "k").propose(func)
    assert caught.value.diagnostics[0].code == "LP332"
