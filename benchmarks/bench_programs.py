"""How long the obligations of whole programs take: operators as written, re-laid, and flattened, concrete and for every
extent.

Run `python -m benchmarks.bench_programs`; figures are medians in milliseconds of the wall clock, reading the program
not counted, solvers warm.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from tests.verify.programs import CONVOLUTION, OPERATORS, PAIRS

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.lower.flatten import FlattenBuffer, LowerBlocks
from layoutproof.verify.faults.vacuity import check_program
from layoutproof.verify.verdict.verdict import Status

ROUNDS = 9


def programs() -> Iterator[tuple[str, PrimFunc]]:
    """Every program that is timed, with its name."""
    named = [(path.stem, loads(path.read_text(encoding="utf-8"))) for path in OPERATORS]
    named += [(path.name.removesuffix(".py"), loads(path.read_text(encoding="utf-8"))) for path in PAIRS]
    named.append(("conv2d for all N,H,W,C,K", loads(CONVOLUTION)))
    for name, function in named:
        yield name, function
        yield f"{name}, flat", FlattenBuffer().propose(LowerBlocks().propose(function).new).new


def milliseconds(function: PrimFunc) -> tuple[float, int]:
    """The median time of all obligations of a program, and how many there are. Raises RuntimeError when one is not
    proved.
    """
    times, count = [], 0
    for _ in range(ROUNDS):
        start = time.perf_counter()
        verdicts = check_program(function)
        times.append((time.perf_counter() - start) * 1e3)
        count = len(verdicts)
        if any(v.status is not Status.PROVED for v in verdicts):
            raise RuntimeError("a program of the benchmark is not proved")
    return statistics.median(times), count


def table() -> str:
    """One line a program as Markdown, and the median and the slowest of all."""
    lines = ["| program | obligations | median ms |", "|---|---|---|"]
    found = []
    for name, function in programs():
        median, count = milliseconds(function)
        found.append(median)
        lines.append(f"| {name} | {count} | {median:.2f} |")
    lines += ["", f"median {statistics.median(found):.2f} ms, slowest {max(found):.2f} ms, of {len(found)} programs"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
