"""How long the steps of whole schedules take, and their preconditions: usual sizes and every size, in the roadmap's
examples and a convolution stored by channels in fours.

Run `python -m benchmarks.bench_schedules [CASE ...]`; figures are milliseconds of the wall clock, medians over rounds
in one process, solvers loaded. Answers of solvers are cached within a process, so the first round has a column.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tests.lowering.loops.cases import CASES, Case

from layoutproof.lowering.passes.base import Pass
from layoutproof.lowering.passes.steps import Step
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.lowering.schedule.trace import passes_of
from layoutproof.verify.checker import prover_at
from layoutproof.verify.values.fast_math import FastMath, names_of
from layoutproof.verify.verdict.verdict import Status

ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Timed:
    """One step as it was in one round. `status` is None where the pass did not apply, `fast_math` where nothing was
    proved.
    """

    name: str
    status: Status | None
    fast_math: tuple[str, ...] | None
    proposing: float
    whole: float

    @property
    def checking(self) -> float:
        """Milliseconds spent on well-formedness and proof."""
        return max(self.whole - self.proposing, 0.0)


def strictness(step: Step) -> tuple[str, ...]:
    """The fast-math assumptions that the proofs of a step need."""
    return names_of(frozenset(FastMath(word) for verdict in step.verdicts for word in verdict.strictness))


def applied(case: Case, schedule: Schedule, transform: Pass) -> Timed:
    """A step applied and timed; one that is refused leaves the schedule as it was."""
    name = transform.primitive
    start = time.perf_counter()
    transform.propose(schedule.func)
    proposing = (time.perf_counter() - start) * 1e3
    start = time.perf_counter()
    try:
        step = schedule.apply(transform)
    except IllegalTransform as problem:
        return Timed(name, problem.status, None, proposing, (time.perf_counter() - start) * 1e3)
    return Timed(name, step.status, strictness(step), proposing, (time.perf_counter() - start) * 1e3)


def round_of(case: Case, every_size: bool) -> list[Timed]:
    """All steps of a schedule, once."""
    schedule = Schedule(case.program(None if every_size else case.sizes))
    found: list[Timed] = []
    for transform in passes_of(case.trace):
        found.append(applied(case, schedule, transform))
        if found[-1].status is not Status.PROVED:
            break
    return found


def measured(case: Case, every_size: bool) -> tuple[list[Timed], list[list[Timed]]]:
    """The first round, with nothing remembered of values, and the others; what is not proved is not measured again."""
    prover_at.cache_clear()
    first = round_of(case, every_size)
    proved = first[-1].status is Status.PROVED
    return first, [round_of(case, every_size) for _ in range(ROUNDS)] if proved else [first]


def table(names: Sequence[str] = ()) -> str:
    """A table of the steps of each schedule as Markdown, and one of the totals."""
    steps = [
        "| schedule | sizes | step | verdict | needs | propose ms | check ms | first ms |",
        "|---|---|---|---|---|---|---|---|",
    ]
    totals = [
        "| schedule | sizes | steps proved | needs | median step ms | whole ms | first ms |",
        "|---|---|---|---|---|---|---|",
    ]
    for case in [CASES[name] for name in names] if names else CASES.values():
        for every_size in (False, True):
            sizes = "every" if every_size else ", ".join(str(size) for size in case.sizes.values())
            first, rounds = measured(case, every_size)
            columns = list(zip(*rounds, strict=True))
            for begun, column in zip(first, columns, strict=True):
                proposing = statistics.median(t.proposing for t in column)
                checking = statistics.median(t.checking for t in column)
                said = (
                    f"| {case.name} | {sizes} | {begun.name} | {begun.status or 'refused'} | {_text(begun.fast_math)} "
                )
                steps.append(f"{said}| {proposing:.1f} | {checking:.1f} | {begun.whole:.0f} |")
            wholes = [statistics.median(t.whole for t in column) for column in columns]
            proved = sum(t.status is Status.PROVED for t in first)
            needs = names_of(frozenset(FastMath(word) for t in first for word in t.fast_math or ()))
            shown = _text(needs) if proved == len(case.steps) else "-"
            total = f"| {case.name} | {sizes} | {proved} of {len(case.steps)} | {shown} "
            totals.append(
                f"{total}| {statistics.median(wholes):.0f} | {sum(wholes):.0f} | {sum(t.whole for t in first):.0f} |"
            )
    return "\n".join([*steps, "", *totals]) + "\n"


def _text(fast_math: tuple[str, ...] | None) -> str:
    return "-" if fast_math is None else " ".join(fast_math) if fast_math else "nothing"


if __name__ == "__main__":
    print(table(sys.argv[1:]), end="")
