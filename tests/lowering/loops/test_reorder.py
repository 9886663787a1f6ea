"""Reordering loops: which nests allow it, and that sums stay what they are."""

from __future__ import annotations

from random import Random

import pytest
from tests.lowering.loops.instances import check_theta
from tests.lowering.loops.test_split import loops_of
from tests.lowering.programs import program, running_sum
from tests.random.nests import apart, assert_same_sums, lowered, random_nest

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.lowering.loops.nest import loops_of_block
from layoutproof.lowering.loops.tiling import Reorder
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule

FOUR = """def main(A: T.Buffer((2, 3, 4, 5), "int32")):
    for a, b, c, d in T.grid(2, 3, 4, 5):
        A[a, b, c, d] = 1
"""


@pytest.mark.parametrize(
    "order, loops",
    [
        (("b", "a"), "for b, a, c, d in T.grid(3, 2, 4, 5):"),
        (("d", "a"), "for d, b, c, a in T.grid(5, 3, 4, 2):"),
        (("d", "c", "b", "a"), "for d, c, b, a in T.grid(5, 4, 3, 2):"),
        ((3, 1), "for a, d, c, b in T.grid(2, 5, 4, 3):"),
        (("b",), "for a, b, c, d in T.grid(2, 3, 4, 5):"),
    ],
)
def test_named_loops_take_the_places_of_named_loops(order: tuple[str | int, ...], loops: str) -> None:
    """Loops that are not named stay where they are."""
    rewrite = Reorder("root", order).propose(program(FOUR))
    assert loops_of(rewrite.new) == [loops]
    check_theta(rewrite)


def test_a_reduction_may_come_to_stand_outside_of_its_results() -> None:
    """Init still runs once for each result, before its first update."""
    func = apart(running_sum())
    schedule = Schedule(func)
    schedule.reorder("sum", ["k", "i"])
    assert loops_of(schedule.func) == ["for k, i in T.grid(5, 14):"]
    assert_same_sums(func, schedule.func)
    assert_same_sums(func, schedule.lower())
    assert Schedule.replay(func, schedule.trace).func == schedule.func


def test_branches_between_loops_go_inside() -> None:
    """A guard that a split left among plain loops does not keep them apart."""
    func = program("""def main(A: T.Buffer((14, 5), "int32"), B: T.Buffer((14,), "int32")):
    for i, j in T.grid(4, 4):
        if i * 4 + j < 14:
            for k in range(5):
                B[i * 4 + j] = B[i * 4 + j] + A[i * 4 + j, k]
""")
    rewrite = Reorder("root", ("k", "i")).propose(func)
    assert loops_of(rewrite.new) == ["for k, j, i in T.grid(5, 4, 4):"]
    check_theta(rewrite)
    assert_same_sums(func, rewrite.new)


REFUSED = [
    (
        """def main(A: T.Buffer((4, 4), "int32")):
    for i in range(4):
        A[i, 0] = 0
        for j in range(4):
            A[i, j] = 1
""",
        ("j", "i"),
        "between the loops i and j stands more than loops and branches",
    ),
    (
        """def main(A: T.Buffer((4, 4), "int32")):
    for i in range(4):
        for j in range(i):
            A[i, j] = 1
""",
        ("j", "i"),
        "the range of loop j depends on i",
    ),
    (
        """def main(A: T.Buffer((4, 4), "int32")):
    for i in range(4):
        if A[i, 0] > 0:
            for j in range(4):
                A[i, j] = 1
""",
        ("j", "i"),
        "between the loops i and j stands more",
    ),
    (
        """def main(A: T.Buffer((4, 4), "int32")):
    for i in range(4):
        for j in T.thread_binding(4, thread="threadIdx.x"):
            A[i, j] = 1
""",
        ("j", "i"),
        "loop j is bound to threadIdx.x",
    ),
    (FOUR, ("a", "z"), "block root has no loop 'z'"),
    (FOUR, ("a", 0), "loop a is named twice"),
]


@pytest.mark.parametrize("text, order, words", REFUSED)
def test_other_nests_are_refused(text: str, order: tuple[str | int, ...], words: str) -> None:
    """What is in the way is named."""
    with pytest.raises(LayoutproofError) as caught:
        Reorder("root", order).propose(program(text))
    assert words in caught.value.diagnostics[0].message


@pytest.mark.parametrize("loops", [[], ["i", "i"], "i", [1.5]])
def test_bad_arguments_are_refused(loops: object) -> None:
    """A list of loops is expected, each once."""
    with pytest.raises(IllegalTransform, match=r"positions from 0, none twice is expected"):
        Schedule(running_sum()).reorder("sum", loops)  # type: ignore[arg-type]  # what a user may pass


@pytest.mark.parametrize("seed", range(12))
def test_random_orders_compute_the_same(seed: int) -> None:
    """Any order of all loops of a random nest leaves the same sums of whole numbers, as blocks and lowered after."""
    rng = Random(f"reorder {seed}")
    func = random_nest(rng)
    count = len(loops_of_block(func, "sum"))
    rewrite = Reorder("sum", tuple(rng.sample(range(count), count))).propose(func)
    check_theta(rewrite)
    assert_same_sums(func, rewrite.new)
    assert_same_sums(func, lowered(rewrite.new))
