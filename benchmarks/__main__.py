"""`make bench`: every measurement in one run, printed, written to benchmarks/results.md with machine, versions and
date, and drawn.
"""

from __future__ import annotations

import datetime
import os
import platform
from importlib.metadata import version
from pathlib import Path

from benchmarks import (
    bench_compare,
    bench_functions,
    bench_gate,
    bench_kernels,
    bench_maps,
    bench_plan,
    bench_programs,
    bench_relayout,
    bench_running,
    bench_scale,
    bench_schedules,
    bench_start,
    plot,
)

RESULTS = Path(__file__).resolve().parent / "results.md"
SCHEDULES = 100
"""How many schedules of an autotuner are checked here, cold and warm: `python -m benchmarks.bench_gate` takes more."""


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor()
    )


def main() -> None:
    """Measure, print, write."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("islpy", "z3-solver", "numpy"))
    parts = [
        "# Measurements",
        f"{datetime.date.today()}; {_processor()}, {os.cpu_count()} cores; Python {platform.python_version()}, "
        f"{packages}.",
        "`make bench` makes this page.",
        "## Full verdicts on index maps, from an IndexMap in process",
        bench_maps.table([bench_maps.measure(case, bench_maps.REPEATS) for case in bench_maps.cases()]),
        "## All obligations of a program, read already",
        bench_programs.table(),
        "## Schedules, each step proved",
        bench_schedules.table(),
        "## Steps in long programs",
        "Processor time.",
        bench_scale.table(),
        "## Lowering long programs",
        "Processor time in milliseconds.",
        bench_scale.lowering_table(),
        "## Unrolled products of matrices, compared",
        "Processor time in milliseconds.",
        bench_scale.unrolled_table(),
        "## Two programs, compared",
        bench_compare.table(),
        f"## A log of {SCHEDULES} candidates",
        bench_gate.measured_table(SCHEDULES),
        "## Starting",
        bench_start.table(),
        "## Running",
        bench_running.table(),
        "## Kernels",
        bench_kernels.table(),
        "## Math functions",
        bench_functions.table(),
        "## Layout changes",
        bench_relayout.table(),
        "## Plans of a network",
        bench_plan.table(),
    ]
    text = "\n\n".join(part.rstrip() for part in parts) + "\n"
    print(text, end="")
    RESULTS.write_text(text, encoding="utf-8")
    plot.main()


if __name__ == "__main__":
    main()
