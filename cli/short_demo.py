"""What the short demo does: a row sum whose rows are stored in padded blocks of four, proved and compiled without the
branch at the end of a row; the same with a pad value that is wrong; both kernels timed.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from time import perf_counter

import numpy as np

from layoutproof.ir.script.reader import loads
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.runtime.kernel import Kernel
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.maps.map_report import MapReport

MAP = "lambda i, j: [i, j//4, j%4]"
ROWS, COLUMNS = 1000, 1022
_TRIALS = 15


@dataclass(frozen=True, slots=True)
class Timing:
    """One kernel: the least seconds of several calls on physical arrays, and whether its sums are numpy's."""

    kernel: Kernel
    seconds: float
    equal: bool


def program_text() -> str:
    """The program, as a file has it."""
    return resources.files("layoutproof.cli").joinpath("programs/row_sum.py").read_text(encoding="utf-8")


def padded(pad_value: int) -> Schedule:
    """The program with its rows in blocks of four; both steps are proved whatever the padding holds."""
    schedule = Schedule(loads(program_text(), "row_sum.py"))
    schedule.transform_layout("sum", "A", MAP, pad_value=pad_value)
    schedule.sequential_buffer_access("sum", "A")
    return schedule


def without_branch(schedule: Schedule) -> IllegalTransform | None:
    """Drop the branch, or give the refusal."""
    try:
        schedule.remove_branching_through_overcompute("sum")
    except IllegalTransform as problem:
        return problem
    return None


def layout() -> MapReport:
    """The layout of a matrix of any size."""
    return check_map(MAP, "n, m")


def timings(schedules: tuple[Schedule, ...]) -> tuple[Timing, ...]:
    """Build the kernels and call them in turn on the same data. Raises LayoutproofError, without a compiler too."""
    kernels = [schedule.build("c") for schedule in schedules]
    matrix = np.random.default_rng(0).integers(-9, 10, (ROWS, COLUMNS)).astype(np.int32)
    rows = np.zeros((ROWS, -(-COLUMNS // 4) * 4), np.int32)
    rows[:, :COLUMNS] = matrix
    stored = rows.reshape(ROWS, -1, 4)
    sums = [np.zeros(ROWS, np.int32) for _ in kernels]
    seconds = [float("inf")] * len(kernels)
    for _ in range(_TRIALS):
        for number, kernel in enumerate(kernels):
            start = perf_counter()
            kernel.raw(stored, sums[number], ROWS, COLUMNS)
            seconds[number] = min(seconds[number], perf_counter() - start)
    expected = matrix.sum(axis=1, dtype=np.int32)
    return tuple(
        Timing(kernel, least, bool(np.array_equal(found, expected)))
        for kernel, least, found in zip(kernels, seconds, sums, strict=True)
    )
