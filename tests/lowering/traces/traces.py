"""Random schedules: steps that the schedule accepts, and its reasons for those that it refuses."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.lowering.small_operators import NAMES, OPERATORS
from tests.lowering.traces.generator import random_pass, size_of

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.script.reader import load
from layoutproof.lowering.passes.base import Pass
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule

LONGEST = 12
LARGEST = 1_000
"""Nodes of a program that is transformed further."""
NOT_APPLICABLE = "does not apply"


@dataclass(frozen=True)
class Attempt:
    """One step that was tried: its status as a verdict has it, or that it does not apply at all, and why it was not
    kept.
    """

    transform: Pass
    status: str
    why: str
    seconds: float
    before: PrimFunc


@dataclass(frozen=True)
class Tried:
    """A schedule, and everything that was tried on the way."""

    operator: str
    schedule: Schedule
    attempts: tuple[Attempt, ...]


def random_schedule(
    seed: int, *, longest: int = LONGEST, search: bool = False, program: PrimFunc | None = None
) -> Tried:
    """A schedule of up to `longest` proved steps on one of the operators at its real size, or on `program`.

    With `search`, counterexamples of refused steps are looked for, so that what is refuted is told from what is
    unknown.
    """
    rng = Random(seed)
    operator = rng.choice(NAMES)
    schedule = Schedule(program if program is not None else load(OPERATORS / f"{operator}.py"))
    wanted, attempts = rng.randint(1, longest), list[Attempt]()
    for _ in range(3 * wanted):
        transform = random_pass(schedule.func, rng) if size_of(schedule.func) < LARGEST else None
        if transform is not None:
            attempts.append(tried(schedule, transform, search))
        if len(schedule.steps) == wanted:
            break
    return Tried(operator, schedule, tuple(attempts))


def tried(schedule: Schedule, transform: Pass, search: bool) -> Attempt:
    """Apply a step, if it may be."""
    before, start = schedule.func, time.perf_counter()
    try:
        step = schedule.apply(transform) if search else schedule.attempt(transform)
        status, why = step.status.value, ""
    except IllegalTransform as problem:
        status = problem.status.value if problem.status is not None else NOT_APPLICABLE
        why = problem.diagnostics[0].message
    return Attempt(transform, status, why, time.perf_counter() - start, before)


def replayed(schedule: Schedule) -> Schedule:
    """The schedule that its trace makes, after a way through JSON."""
    return Schedule.replay(schedule.original, json.loads(json.dumps(schedule.trace)))


def proposal(attempt: Attempt) -> Rewrite:
    """What was proposed in an attempt."""
    return attempt.transform.propose(attempt.before)


def operator_path(name: str) -> Path:
    """The file of an operator."""
    return OPERATORS / f"{name}.py"
