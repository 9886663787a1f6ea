"""Branches that say the same thing twice become one; what the first body may change keeps them apart."""

from __future__ import annotations

from random import Random

import pytest
from tests.lowering.cleanup.programs import random_function, stated, text_of
from tests.lowering.programs import program
from tests.lowering.small_operators import assert_same_results
from tests.shares import one_in

from layoutproof.ir.rewrite import Rewrite, Witness
from layoutproof.lowering.cleanup.rebuild import Origins
from layoutproof.lowering.lower.simplify import Merging, Simplify
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.passes.witness_maps import count_stores
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.faults.vacuity import is_idle
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.verdict.verdict import Status

MERGED = {
    "the same condition": (
        """    for i in range(16):
        if i < 3:
            A[i] = A[i] + 1
        if i < 3:
            B[i] = A[i]
""",
        """    for i in range(16):
        if i < 3:
            A[i] = A[i] + 1
            B[i] = A[i]
""",
    ),
    "an equivalent condition": (
        """    for i in range(16):
        if i < 12:
            A[i] = A[i] + 1
        if i // 4 < 3:
            B[i] = 1
        else:
            B[i] = 2
""",
        """    for i in range(16):
        if i < 12:
            A[i] = A[i] + 1
            B[i] = 1
        else:
            B[i] = 2
""",
    ),
    "the roadmap's complementary conditions": (
        """    for i, j in T.grid(4, 4):
        if 4 * i + j < 14:
            C[i, j] = A[4 * i + j]
        if i == 3 and j >= 2:
            C[i, j] = 0
""",
        """    for i, j in T.grid(4, 4):
        if i * 4 + j < 14:
            C[i, j] = A[i * 4 + j]
        else:
            C[3, j] = 0
""",
    ),
    "the contrary, arms crossed": (
        """    for i in range(16):
        if i < 3:
            A[i] = 1
        else:
            A[i] = 2
        if i >= 3:
            B[i] = i
        else:
            B[i] = 5
""",
        """    for i in range(16):
        if i < 3:
            A[i] = 1
            B[i] = 5
        else:
            A[i] = 2
            B[i] = i
""",
    ),
    "three in a row": (
        """    for i in range(16):
        if i < 3:
            A[i] = 1
        if i <= 2:
            B[i] = 2
        if i >= 3:
            B[i] = 3
""",
        """    for i in range(16):
        if i < 3:
            A[i] = 1
            B[i] = 2
        else:
            B[i] = 3
""",
    ),
    "equal only under the loops around": (
        """    for i in range(8):
        if i % 4 == 3:
            A[i] = 1
        if i == 3 or i == 7:
            B[i] = 2
""",
        """    for i in range(8):
        if i % 4 == 3:
            A[i] = 1
            B[i] = 2
""",
    ),
    "a condition on memory that stays as it is": (
        """    for i in range(16):
        if A[0] < 3:
            B[i] = 1
        if A[0] < 3:
            C[0, 0] = i
""",
        """    for i in range(16):
        if A[0] < 3:
            B[i] = 1
            C[0, 0] = i
""",
    ),
    "equal arms": (
        """    for i in range(16):
        if i < 3:
            A[i] = B[i]
        else:
            A[i] = B[i]
""",
        """    for i in range(16):
        A[i] = B[i]
""",
    ),
    "conditions on one let of what was loaded": (
        """    for i in range(16):
        x: T.int32 = A[i]
        if x < 3:
            A[i] = 1
        if x >= 3:
            B[i] = 2
""",
        """    for i in range(16):
        x: T.let[T.int32] = A[i]
        if x < 3:
            A[i] = 1
        else:
            B[i] = 2
""",
    ),
    "arms that are equal once simplified": (
        """    for i in range(16):
        if i < 3:
            A[i] = B[(i * 4 + 3) // 4]
        else:
            A[i * 2 - i] = B[i]
""",
        """    for i in range(16):
        A[i] = B[i]
""",
    ),
    "in blocks": (
        """    for i, j in T.grid(4, 4):
        with T.sblock("two"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads()
            T.writes(C[vi, vj], B[vi * 4 + vj])
            if vi * 4 + vj < 14:
                C[vi, vj] = 1
            if vi == 3 and vj >= 2:
                B[vi * 4 + vj] = 0
""",
        """    for i, j in T.grid(4, 4):
        with T.sblock("two"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads()
            T.writes(C[vi, vj], B[vi * 4 + vj])
            if vi * 4 + vj < 14:
                C[vi, vj] = 1
            else:
                B[vj + 12] = 0
""",
    ),
}


@one_in(4)
@pytest.mark.parametrize("name", MERGED)
def test_branches_merge(name: str) -> None:
    """Each merged program is proved, prints what is expected and computes what the old one did; a second time nothing
    changes.
    """
    before, after = MERGED[name]
    func = stated(before)
    schedule = Schedule(func)
    assert schedule.simplify().status is Status.PROVED
    assert text_of(schedule.func) == after
    assert_same_results(func, schedule.func)
    assert Schedule.replay(func, schedule.trace).func == schedule.func
    assert Simplify().propose(schedule.func).new == schedule.func


APART = {
    "the first body writes what the second condition reads": """    for i in range(16):
        if A[0] < 3:
            A[0] = B[i]
        if A[0] < 3:
            C[0, 0] = i
""",
    "it writes it in the other arm": """    for i in range(16):
        if A[i] < 3:
            B[i] = 1
        else:
            A[i] = 2
        if A[i] < 3:
            C[0, 0] = i
""",
    "neither the same nor the contrary": """    for i in range(16):
        if i < 3:
            A[i] = 1
        if i < 4:
            B[i] = 2
""",
    "not for all values of the loops": """    for i, j in T.grid(4, 4):
        if i * 4 + j < 14:
            C[i, j] = 1
        if i == 3 and j >= 1:
            C[3, j] = 0
""",
    "something between": """    for i in range(16):
        if i < 3:
            A[i] = 1
        B[i] = A[15 - i]
        if i < 3:
            A[15 - i] = 2
""",
    "arms that differ": """    for i in range(16):
        if i < 3:
            A[i] = B[i]
        else:
            A[i] = B[15 - i]
""",
}


@pytest.mark.parametrize("name", APART)
def test_branches_that_must_stay_apart(name: str) -> None:
    """The table of transforms: conditions that read what the first body writes are not merged, nor are others than
    equal ones.
    """
    func = stated(APART[name])
    schedule = Schedule(func)
    schedule.simplify()
    assert schedule.func == func


def test_parameters_that_may_overlap_keep_conditions_on_memory_apart() -> None:
    """A store through another name could change what the second condition reads."""
    func = program("""def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range(16):
        if A[0] < 3:
            B[i] = 1
        if A[0] < 3:
            B[0] = i
""")
    assert Simplify().propose(func).new == func


def test_a_branch_around_an_init_merges_like_others() -> None:
    """A branch around a block with an init and one beside it with the same condition become one."""
    func = stated("""    for i, k in T.grid(4, 4):
        if k < 2:
            with T.sblock("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.reads(C[vi, vk])
                T.writes(B[vi])
                with T.init():
                    B[vi] = 0
                B[vi] = B[vi] + C[vi, vk]
        if k < 2:
            A[i] = 1
""")
    schedule = Schedule(func)
    assert schedule.simplify().status is Status.PROVED
    assert schedule.script().count("if k < 2:") == 1


@pytest.mark.parametrize("name", ["the first body writes what the second condition reads", "arms that differ"])
def test_a_wrong_merge_is_refuted(name: str) -> None:
    """The checker does not believe the pass: forced to merge, it says something that is not so."""
    func = stated(APART[name])
    after = {
        "arms that differ": """    for i in range(16):
        A[i] = B[i]
""",
        "the first body writes what the second condition reads": """    for i in range(16):
        if A[0] < 3:
            A[0] = B[i]
            C[0, 0] = i
""",
    }[name]
    new = stated(after)
    origins = Origins(func)
    witness = origins.rewrite(origins.body).witness
    kept = witness.instances[: count_stores(new.body)]
    verdicts = check_rewrite(Rewrite(func, new, Witness(kept)))
    assert any(v.status is Status.REFUTED for v in verdicts)


def test_equal_arms_under_a_condition_on_memory_stay() -> None:
    """That no arm was needed is not proved yet where data decides between them, so both stay."""
    func = stated("""    for i in range(16):
        if A[0] < 3:
            B[i] = 1
        else:
            B[i] = 1
""")
    asked: list[bool] = []

    def may() -> bool:
        asked.append(True)
        return True

    origins = Origins(func)
    rewrite = origins.rewrite(Merging(func, origins, may).run(origins.body))
    assert (
        text_of(rewrite.new)
        == """    for i in range(16):
        B[i] = 1
"""
        and len(asked) == 1
    )
    assert Simplify().propose(func).new == func


@one_in(24)
@pytest.mark.parametrize("seed", range(60))
def test_random_programs_compute_what_they_did(seed: int) -> None:
    """Whatever is merged or put in, the results stay, and what was proposed is accepted."""
    func = random_function(Random(seed))
    schedule = Schedule(func)
    if is_idle(func):
        with pytest.raises(IllegalTransform, match="nothing can be observed"):
            schedule.simplify()
        return
    schedule.simplify()
    assert_same_results(func, schedule.func)
