"""How long the command line takes before it works: help, the version, a wrong call, and loading what proves.

Run `python -m benchmarks.bench_start`. Each figure is the median wall clock of fresh processes whose bytecode was
written before: that of `import click` is what no command can be below.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence

ROUNDS = 9
PROCESSES: Mapping[str, Sequence[str]] = {
    "`python -c pass`": ("-c", "pass"),
    "`import click`": ("-c", "import click"),
    "`layoutproof --help`": ("-m", "layoutproof", "--help"),
    "`layoutproof check --help`": ("-m", "layoutproof", "check", "--help"),
    "`layoutproof run --help`": ("-m", "layoutproof", "run", "--help"),
    "`layoutproof --version`": ("-m", "layoutproof", "--version"),
    "a wrong call": ("-m", "layoutproof", "map"),
    "`import layoutproof`": ("-c", "import layoutproof"),
    "reading programs: `layoutproof.ir.script.reader`": ("-c", "import layoutproof.ir.script.reader"),
    "proving: `layoutproof.lowering.schedule.schedule`": ("-c", "import layoutproof.lowering.schedule.schedule"),
    "and the solvers": ("-c", "import layoutproof.lowering.schedule.schedule, islpy, z3"),
}


def seconds(arguments: Sequence[str], environment: Mapping[str, str], rounds: int = ROUNDS) -> float:
    """The median of several processes, after one that writes the bytecode."""
    found = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
        )
        found.append(time.perf_counter() - start)
    return statistics.median(found[1:])


def rows() -> list[tuple[str, str]]:
    """What was measured, and the figure."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = folder
        return [(name, f"{seconds(arguments, environment) * 1e3:.0f} ms") for name, arguments in PROCESSES.items()]


def table() -> str:
    """The figures as Markdown."""
    return "\n".join(["| what | median |", "|---|---|", *(f"| {what} | {figure} |" for what, figure in rows())]) + "\n"


if __name__ == "__main__":
    print(table(), end="")
