"""How long the command line takes for small things: help, the version, an explanation, a map, a picture, steps that the
proof cache knows; and loading what proves.

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
from pathlib import Path

ROUNDS = 9
_NCHW4C = "lambda n, h, w, c: [n, c//4, h, w, c%4]"
_EXAMPLES = Path(__file__).parent.parent / "examples"
PROCESSES: Mapping[str, Sequence[str]] = {
    "`python -c pass`": ("-c", "pass"),
    "`import click`": ("-c", "import click"),
    "`layoutproof --help`": ("-m", "layoutproof", "--help"),
    "`layoutproof check --help`": ("-m", "layoutproof", "check", "--help"),
    "`layoutproof run --help`": ("-m", "layoutproof", "run", "--help"),
    "`layoutproof --version`": ("-m", "layoutproof", "--version"),
    "a wrong call": ("-m", "layoutproof", "map"),
    "`layoutproof explain LP213`": ("-m", "layoutproof", "explain", "LP213"),
    "`layoutproof map`, NHWC as NCHW4c": ("-m", "layoutproof", "map", _NCHW4C, "--shape", "16,64,64,128"),
    "`layoutproof draw`, a swizzle of 8 by 8": (
        *("-m", "layoutproof", "draw", "lambda i, j: [i, j ^ i]", "--shape", "8,8", "-o", "swizzle.svg"),
    ),
    "`layoutproof check` of steps that the cache knows": (
        *("-m", "layoutproof", "check", str(_EXAMPLES / "programs" / "row_sum.py")),
        *("--trace", str(_EXAMPLES / "row_sum.json"), "--cache", "proofs.sqlite"),
    ),
    "`import layoutproof`": ("-c", "import layoutproof"),
    "reading programs: `layoutproof.ir.script.reader`": ("-c", "import layoutproof.ir.script.reader"),
    "proving: `layoutproof.lowering.schedule.schedule`": ("-c", "import layoutproof.lowering.schedule.schedule"),
    "and the solvers": ("-c", "import layoutproof.lowering.schedule.schedule, islpy, z3"),
}


def seconds(
    arguments: Sequence[str], environment: Mapping[str, str], rounds: int = ROUNDS, folder: str | None = None
) -> float:
    """The median of several processes in a folder, after one that writes the bytecode and fills the cache."""
    found = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=folder,
        )
        found.append(time.perf_counter() - start)
    return statistics.median(found[1:])


def rows() -> list[tuple[str, str]]:
    """What was measured, and the figure."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = folder
        return [
            (name, f"{seconds(arguments, environment, folder=folder) * 1e3:.0f} ms")
            for name, arguments in PROCESSES.items()
        ]


def table() -> str:
    """The figures as Markdown."""
    return "\n".join(["| what | median |", "|---|---|", *(f"| {what} | {figure} |" for what, figure in rows())]) + "\n"


if __name__ == "__main__":
    print(table(), end="")
