"""Any trace of proved steps replays from its JSON to the same program, the same trace and the same certificate."""

from __future__ import annotations

from dataclasses import MISSING

import pytest
from tests.lowering.traces.generator import KINDS, options_of
from tests.lowering.traces.traces import LONGEST, random_schedule, replayed
from tests.shares import one_in, some

from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.passes.base import ArgumentKind
from layoutproof.lowering.schedule.primitives import PASSES
from layoutproof.verify.verdict.verdict import Status

SLICE, SHORT, BATCH = 30, 4, 5
CAMPAIGN, CAMPAIGN_BATCH = 1_000, 10


def test_every_primitive_is_drawn() -> None:
    """Each option of each primitive gets its value from a table, or has a default: every kind is in one."""
    assert [*KINDS] == [*ArgumentKind]
    for each in PASSES.values():
        needed = {f.name for f in each.options() if f.default is MISSING}
        assert needed <= {name for name, _ in options_of(each)}


def check(seed: int, longest: int) -> int:
    """One random schedule and its replay; how many steps it has."""
    schedule = random_schedule(seed, longest=longest).schedule
    assert len(schedule.steps) <= longest and all(step.status is Status.PROVED for step in schedule.steps)
    again = replayed(schedule)
    assert again.func == schedule.func and again.script() == schedule.script()
    assert again.trace == schedule.trace
    assert loads(print_func(schedule.func)) == schedule.func
    assert again.certificate.document == schedule.certificate.document
    return len(schedule.steps)


@one_in(10)
@pytest.mark.parametrize("batch", some(range(SLICE // BATCH), 2))
def test_traces_replay(batch: int) -> None:
    """Random legal schedules over the real operators: program, trace and certificate are the same after JSON."""
    steps = [check(seed, SHORT) for seed in range(BATCH * batch, BATCH * (batch + 1))]
    assert sum(steps) > BATCH


@pytest.mark.campaign
@pytest.mark.parametrize("batch", range(CAMPAIGN // CAMPAIGN_BATCH))
def test_traces_replay_campaign(batch: int) -> None:
    """The same for a thousand schedules of up to twelve steps."""
    seeds = range(1_000 + CAMPAIGN_BATCH * batch, 1_000 + CAMPAIGN_BATCH * (batch + 1))
    assert sum(check(seed, LONGEST) for seed in seeds) > 2 * CAMPAIGN_BATCH
