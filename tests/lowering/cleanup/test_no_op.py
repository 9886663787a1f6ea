"""Stores without effect go; those with one stay."""

from __future__ import annotations

from random import Random

import pytest
from tests.lowering.cleanup.programs import random_function, stated, text_of
from tests.lowering.programs import program
from tests.lowering.small_operators import assert_same_results
from tests.shares import one_in, some

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.cleanup.remove_no_op import RemoveNoOp, without_stores
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.verdict.verdict import Status

REMOVED = {
    "overwritten in the same iteration": (
        """    for i in range(16):
        A[i] = 100
        A[i] = 42
""",
        """    for i in range(16):
        A[i] = 42
""",
    ),
    "a part overwritten by all": (
        """    for i in range(4, 12):
        A[i] = 100
    for i in range(16):
        A[i] = 42
""",
        """    for i in range(16):
        A[i] = 42
""",
    ),
    "under a condition that implies the later one": (
        """    for i in range(16):
        if i < 10:
            A[i] = 100
    for i in range(16):
        if i // 4 < 3:
            A[i] = 42
""",
        """    for i in range(16):
        if i // 4 < 3:
            A[i] = 42
""",
    ),
    "what was stored there before": (
        """    for i in range(16):
        A[i] = i
    A[4] = 4
""",
        """    for i in range(16):
        A[i] = i
""",
    ),
    "one of two equal loops": (
        """    for i in range(16):
        A[i] = i
    for i in range(16):
        A[i] = i
""",
        """    for i in range(16):
        A[i] = i
""",
    ),
    "with a loop over another buffer between": (
        """    for i in range(16):
        A[i] = 100
    for i in range(16):
        B[i] = 0
    for i in range(16):
        A[i] = 42
""",
        """    for i in range(16):
        B[i] = 0
    for i in range(16):
        A[i] = 42
""",
    ),
    "with a disjoint part stored between": (
        """    for i in range(13):
        A[i] = 100
    for i in range(16):
        if i > 12:
            A[i] = 15
    for i in range(13):
        A[i] = 42
""",
        """    for i in range(16):
        if i > 12:
            A[i] = 15
    for i in range(13):
        A[i] = 42
""",
    ),
    "overwritten by two parts together": (
        """    for i in range(16):
        A[i] = 100
    for i in range(13):
        A[i] = 42
    for i in range(13, 16):
        A[i] = 15
""",
        """    for i in range(13):
        A[i] = 42
    for i in range(13, 16):
        A[i] = 15
""",
    ),
    "the value just read": ("    A[0] = A[0]\n", ""),
    "the value just read, its index written another way": (
        """    for io, ii in T.grid(4, 4):
        i: T.int32 = io * 4 + ii
        A[4 * io + ii] = A[i]
""",
        "",
    ),
    "the value just read, under the condition of that arm": (
        """    for i in range(16):
        if i != 0:
            A[i] = A[i - 1]
        else:
            A[i] = A[0]
""",
        """    for i in range(16):
        if i != 0:
            A[i] = A[i - 1]
""",
    ),
    "the first of two arms": (
        """    for i in range(16):
        if i < 14:
            A[i] = A[i]
        else:
            A[i] = 0
""",
        """    for i in range(16):
        if i >= 14:
            A[i] = 0
""",
    ),
    "a value that is assumed to be there": (
        """    for i in range(16):
        T.assume(i < 14 or A[i] == 0)
    for i in range(16):
        if i >= 14:
            A[i] = 0
    for i in range(16):
        B[i] = A[i] + 1
""",
        """    for i in range(16):
        T.assume(i < 14 or A[i] == 0)
    for i in range(16):
        B[i] = A[i] + 1
""",
    ),
    "a temporary that nobody reads": (
        """    S = T.alloc_buffer((16,), "int32")
    for i in range(16):
        S[i] = A[i]
        B[i] = 1
""",
        """    for i in range(16):
        B[i] = 1
""",
    ),
    "temporaries that only feed each other": (
        """    S = T.alloc_buffer((16,), "int32")
    R = T.alloc_buffer((16,), "int32")
    for i in range(16):
        S[i] = A[i]
    for i in range(16):
        R[i] = S[i] + 1
    B[0] = 1
""",
        "    B[0] = 1\n",
    ),
    "the last store to a temporary": (
        """    S = T.sblock_alloc_buffer((16,), "int32")
    for i in range(16):
        S[i] = A[i]
    for i in range(16):
        B[i] = B[i] + S[i]
    for i in range(16):
        S[i] = 0
""",
        """    S = T.sblock_alloc_buffer((16,), "int32")
    for i in range(16):
        S[i] = A[i]
    for i in range(16):
        B[i] = B[i] + S[i]
""",
    ),
    "in a block, with its annotations": (
        """    for i in range(16):
        with T.sblock("two"):
            v = T.axis.spatial(16, i)
            T.reads(B[v])
            T.writes(A[v])
            A[v] = B[v]
            A[v] = 1
""",
        """    for i in range(16):
        with T.sblock("two"):
            v = T.axis.spatial(16, i)
            T.reads()
            T.writes(A[v])
            A[v] = 1
""",
    ),
}


@one_in(14)
@pytest.mark.parametrize("name", REMOVED)
def test_stores_without_effect_go(name: str) -> None:
    """Facts 88 and 89, the cases that upstream expects to fail included: the step is proved, and prints what is
    expected.
    """
    before, after = REMOVED[name]
    func = stated(before)
    schedule = Schedule(func)
    step = schedule.remove_no_op()
    assert text_of(schedule.func) == after
    assert step.status in (Status.PROVED, Status.VACUOUS)
    assert_same_results(func, schedule.func)
    assert Schedule.replay(func, schedule.trace).func == schedule.func
    assert loads(print_func(schedule.func)) == schedule.func


KEPT = {
    "overwritten in part": """    for i in range(16):
        A[i] = 100
    for i in range(16):
        if i < 12:
            A[i] = 42
""",
    "read before it is overwritten": """    for i in range(16):
        A[i] = 100
    for i in range(16):
        B[i] = A[i]
    for i in range(16):
        A[i] = 42
""",
    "read by a later iteration": """    for i in range(1, 16):
        A[i] = A[i - 1]
    A[0] = 0
""",
    "another value than was assumed": """    for i in range(16):
        T.assume(i < 14 or A[i] == 0)
    for i in range(16):
        if i >= 14:
            A[i] = 1
""",
    "no longer the assumed value": """    for i in range(16):
        T.assume(A[i] == 0)
    A[3] = 1
    for i in range(16):
        A[i] = 0
        B[i] = A[3]
""",
    "a temporary that is read": """    S = T.sblock_alloc_buffer((16,), "int32")
    for i in range(16):
        S[i] = 0
    for i in range(16):
        B[i] = S[i]
""",
}


@pytest.mark.parametrize("name", KEPT)
def test_stores_with_an_effect_stay(name: str) -> None:
    """Where something may be seen of a store, the program stays; of two stores only the one without effect goes."""
    func = stated(KEPT[name])
    schedule = Schedule(func)
    schedule.remove_no_op()
    if name == "no longer the assumed value":
        assert "A[3] = 1" not in text_of(schedule.func) or "A[i] = 0" in text_of(schedule.func)
    else:
        assert schedule.func == func
    assert_same_results(func, schedule.func)


@pytest.mark.parametrize(
    "name", ["overwritten in part", "read before it is overwritten", "another value than was assumed"]
)
def test_a_proposal_without_a_needed_store_is_refuted(name: str) -> None:
    """The checker does not believe the pass: with such a store taken out, an input shows the difference."""
    verdicts = check_rewrite(without_stores(stated(KEPT[name]), {0}))
    assert any(v.status is Status.REFUTED for v in verdicts)


def test_what_is_called_is_called_still() -> None:
    """The call in a value stays when its store goes; around a call that nobody looks into that is not proved, so the
    store stays.
    """
    func = stated("""    A[0] = T.call_extern("int32", "next")
    A[0] = 42
""")
    assert (
        text_of(without_stores(func, {0}).new)
        == """    T.call_extern("int32", "next")
    A[0] = 42
"""
    )
    assert RemoveNoOp().propose(func).new == func
    assert any(
        "no counterpart" in str(v.reason) or "not looked into" in str(v.reason)
        for v in check_rewrite(without_stores(func, {0}))
    )


def test_parameters_that_may_overlap_are_left_alone() -> None:
    """Without the promise that parameters do not overlap, a store may be seen through another name."""
    func = program("""def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range(16):
        A[i] = 1
        B[i] = A[i] + 2
        A[i] = 3
""")
    assert RemoveNoOp().propose(func).new == func


def test_a_program_that_does_nothing_is_kept_as_such() -> None:
    """A step may leave nothing to run; under assumptions on symbols it may not, since they could be contradictory."""
    schedule = Schedule(stated("    A[0] = A[0]\n"))
    assert schedule.remove_no_op().status is Status.VACUOUS
    assert print_func(schedule.lower()).endswith("True})\n")
    contradictory = program("""def main(A: T.Buffer((16,), "int32"), n: T.int32):
    T.assume(n > 3)
    T.assume(n < 3)
    A[0] = A[0]
""")
    with pytest.raises(IllegalTransform, match="is vacuous"):
        Schedule(contradictory).remove_no_op()


@one_in(4)
def test_no_ops_go_once() -> None:
    """A second time nothing changes."""
    for name in REMOVED:
        once = RemoveNoOp().propose(stated(REMOVED[name][0])).new
        assert RemoveNoOp().propose(once).new == once, name


@one_in(21)
@pytest.mark.parametrize("seed", some(range(40), 15))
def test_random_programs_compute_what_they_did(seed: int) -> None:
    """Whatever goes, the results stay, and what was proposed is accepted."""
    func: PrimFunc = random_function(Random(seed))
    schedule = Schedule(func)
    schedule.remove_no_op()
    assert_same_results(func, schedule.func)


def test_the_pass_stands_in_traces_as_itself() -> None:
    """It has no options."""
    assert RemoveNoOp.from_arguments(RemoveNoOp().arguments()) == RemoveNoOp()


def test_what_may_change_the_sign_of_a_zero_stays() -> None:
    """`B[i] + 0.0` makes +0.0 of -0.0, so that storing it is no no-op bit for bit."""
    func = program("""def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        B[i] = B[i] + T.float32(0)
""")
    schedule = Schedule(func)
    schedule.remove_no_op()
    assert schedule.func == func
