"""The schedules of `cases.py`: what they compute at every size, and that each step is proved or refused."""

from __future__ import annotations

import json

import pytest
from tests.lowering.loops.cases import CASES, REFUSED, Sizes
from tests.lowering.small_operators import assert_same_results
from tests.shares import chosen, one_in

from layoutproof.lowering.passes.steps import prove_step
from layoutproof.lowering.schedule.schedule import LOWERING, IllegalTransform, Schedule
from layoutproof.lowering.schedule.trace import passes_of, trace_of
from layoutproof.verify.verdict.verdict import Status

# Whole numbers in floats stay exact in any order; these cases keep the order of every sum, and are compared bit for
# bit.
ROWS = [{"n": n, "m": m} for n in (0, 1, 3, 4, 14) for m in (0, 1, 4, 5, 8)]
LENGTHS = [{"n": n} for n in (0, 1, 2, 3, 4, 13, 14, 16)]
IMAGES = [
    {"N": n, "H": h, "W": 2, "C": c, "K": k}
    for n, h, c, k in ((1, 3, 5, 6), (1, 1, 4, 8), (2, 2, 1, 1), (0, 2, 3, 3), (1, 2, 0, 5))
]
RUNS = [
    (name, sizes)
    for name, case in CASES.items()
    for sizes in (IMAGES if "N" in case.sizes else ROWS if "m" in case.sizes else LENGTHS)
    if name != "halo_conv2d" or sizes["H"] >= 2
]


@one_in(21)
@pytest.mark.parametrize("name, sizes", RUNS)
def test_the_symbolic_schedule_computes_the_same_at_each_size(name: str, sizes: Sizes) -> None:
    """One program for all sizes, run at this one: nothing, one element, exact multiples and all else."""
    case = CASES[name]
    assert_same_results(case.program(), case.result(), case.pads, sizes)


_IMAGE = {"N": 1, "H": 3, "W": 2, "C": 5, "K": 6}
SMALL: dict[str, Sizes] = {
    "row_sum": {"n": 3, "m": 5},
    "row_sum_of_loops": {"n": 3, "m": 5},
    **{name: _IMAGE for name, case in CASES.items() if "N" in case.sizes},
}


@one_in(4)
@pytest.mark.parametrize("name", CASES)
def test_the_concrete_schedule_computes_the_same(name: str) -> None:
    """The same schedule for numbers that do not divide."""
    case = CASES[name]
    sizes = SMALL.get(name, case.sizes)
    assert_same_results(case.program(sizes), case.result(sizes), case.pads)


# Every run proves each, turn about for the sizes that people have and for all.
PROVED = [(name, every) for name in CASES for every in (False, True)]
NEEDS: dict[str, set[str]] = {"halo_conv2d": {"nnan", "ninf"}}


@one_in(35)
@pytest.mark.parametrize(
    "case_of", chosen(PROVED, lambda number: number % 4 in (1, 2), lambda case_of: f"{case_of[0]}-{case_of[1]}")
)
def test_each_step_is_proved(case_of: tuple[str, bool]) -> None:
    """For the sizes that people have, and for all, with the fewest fast-math assumptions: bit for bit unless padding of
    zeros meets a weight that may be anything. The trace goes through JSON and replays to the same program.
    """
    name, every = case_of
    case = CASES[name]
    sizes = None if every else case.sizes
    schedule = case.schedule(sizes)
    assert all(step.status is Status.PROVED for step in schedule.steps)
    assert {word for step in schedule.steps for verdict in step.verdicts for word in verdict.strictness} == NEEDS.get(
        name, set()
    )
    assert schedule.func == case.result(sizes)
    trace = json.loads(json.dumps(schedule.trace))
    assert trace_of(passes_of(trace)) == schedule.trace
    if "N" not in case.sizes:
        assert Schedule.replay(case.program(sizes), trace).func == schedule.func


@one_in(14)
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "N" in case.sizes])
def test_what_is_proved_lowers_and_is_proved_there(name: str) -> None:
    """Every pass of lowering is proved for every size, the simplifier's among them, and what comes out computes the
    same.
    """
    case = CASES[name]
    func = case.result()
    steps = [prove_step(func, LOWERING[0])]
    for transform in LOWERING[1:]:
        steps.append(prove_step(steps[-1].rewrite.new, transform))
    assert {step.status for step in steps} == {Status.PROVED}
    assert_same_results(case.program(), steps[-1].rewrite.new, case.pads, _IMAGE)


@one_in(4)
@pytest.mark.parametrize("name", REFUSED)
def test_the_last_step_is_refused(name: str) -> None:
    """Every step but the last is proved; the last is not, and leaves the schedule as it was."""
    case = REFUSED[name]
    schedule = Schedule.replay(case.program(case.sizes), case.trace[:-1])
    with pytest.raises(IllegalTransform) as caught:
        Schedule.replay(case.program(case.sizes), case.trace)
    assert caught.value.status in (Status.REFUTED, Status.UNKNOWN)
    assert schedule.trace == case.trace[:-1]


@one_in(10)
def test_weights_that_only_meet_the_halo_are_found() -> None:
    """Of all sizes, those of one row or column refute that branches go under fast-math assumptions on what is computed:
    the infinity in a row of weights that nobody read is no value of the old program's.
    """
    case = REFUSED["halo_conv2d_of_one_row"]
    with pytest.raises(IllegalTransform) as caught:
        Schedule.replay(case.program(), case.trace)
    assert caught.value.status is Status.REFUTED
    (found,) = (v.counterexample for v in caught.value.verdicts if v.status is Status.REFUTED)
    assert found is not None
    assert 1 in (found["symbols"]["H"], found["symbols"]["W"])
