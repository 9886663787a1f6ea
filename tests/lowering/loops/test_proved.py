"""Random nests under a schedule: steps on sums of whole numbers are proved, and what is kept computes the same."""

from __future__ import annotations

from random import Random

import pytest
from tests.lowering.small_operators import assert_same_results
from tests.random.nests import apart, assert_same_sums, lowered, random_nest, random_pass
from tests.shares import one_in

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.verify.verdict.verdict import Status


@one_in(4)
@pytest.mark.parametrize("seed", range(10))
def test_loops_of_sums_may_be_changed_at_will(seed: int) -> None:
    """Two transforms of a random nest, of blocks or plain loops: each that applies is proved, whatever the order of the
    sums becomes.
    """
    rng = Random(f"proved {seed}")
    func, block = apart(random_nest(rng)), "sum"
    if rng.random() < 0.4:
        func, block = lowered(func), "root"
    schedule = Schedule(func)
    for _ in range(2):
        try:
            schedule.apply(random_pass(rng, schedule.func, block))
        except LayoutproofError as problem:
            # Plain loops with an init between them cannot be reordered; nothing that applies is refused.
            assert isinstance(problem, IllegalTransform) and problem.verdict is None
    assert all(step.status is Status.PROVED for step in schedule.steps)
    assert_same_sums(func, schedule.func)


@one_in(7)
@pytest.mark.parametrize("seed", range(8))
def test_guards_that_go_are_not_missed(seed: int) -> None:
    """Over padding of zeros in an input, some guards may go and others may not; the sums stay what they are."""
    rng = Random(f"dropped {seed}")
    func, tile = apart(random_nest(rng)), rng.choice([2, 3, 4])
    schedule = Schedule(func)
    schedule.transform_layout("sum", "A", f"lambda i, j, k, l: [i, j, k//{tile}, l, k%{tile}]", 0)
    schedule.sequential_buffer_access("sum", "A")
    try:
        schedule.remove_branching_through_overcompute("sum")
    except IllegalTransform as problem:
        assert problem.status is None or problem.status in (Status.REFUTED, Status.UNKNOWN)
    assert_same_results(func, schedule.func, {"A": [0]})
