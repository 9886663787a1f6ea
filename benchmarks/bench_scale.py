"""How the cost of a step grows with the program around it: a chain of statements, of which a step changes one in the
middle.

Run `python -m benchmarks.bench_scale [STATEMENTS ...]`; figures are milliseconds of processor time, the least of some
rounds in one process. The first step of a schedule looks at every statement once, and has a column; each other one is a
step of its kind after that. The exponent is that of the number of statements, between the last two rows.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from math import log

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.schedule.schedule import Schedule

COUNTS = (10, 100, 1000, 5000)
ROUNDS = 3
STEPS: dict[str, Callable[[Schedule, int], object]] = {
    "split": lambda schedule, k: schedule.split(f"b{k}", f"i{k}", [None, 4]),
    "reorder": lambda schedule, k: schedule.reorder(f"b{k}", [f"j{k}", f"i{k}"]),
    "layout step": lambda schedule, k: schedule.transform_layout(
        f"b{k}", f"T{k - 1}", "lambda i, j: [i // 4, j, i % 4]"
    ),
    "branch removal": lambda schedule, k: schedule.remove_branching_through_overcompute(f"g{k}"),
}
GUARDED = 3  # every so many statements has a branch that is not needed


def chain(count: int) -> PrimFunc:
    """Statements that each read what the one before wrote, the last one stored to an output."""
    lines = [
        "@T.prim_func",
        'def chain(A: T.Buffer((64, 16), "float32"), Z: T.Buffer((64, 16), "float32")):',
        '    T.func_attr({"tirx.noalias": True})',
        *(f'    T{k} = T.alloc_buffer((64, 16), "float32")' for k in range(count - 1)),
    ]
    names = ["A", *(f"T{k}" for k in range(count - 1)), "Z"]
    for k in range(count):
        guard = k % GUARDED == 0
        lines += [
            f"    for i{k}, j{k} in T.grid(64, 16):",
            f'        with T.block("{"g" if guard else "b"}{k}"):',
            f'            vi, vj = T.axis.remap("SS", [i{k}, j{k}])',
            *(["            T.where(vi * 16 + vj < 1024)"] if guard else []),
            f"            {names[k + 1]}[vi, vj] = {names[k]}[vi, vj] + T.float32({k % 7})",
        ]
    return loads("\n".join(lines) + "\n")


def milliseconds(act: Callable[[], object]) -> float:
    """The processor time of a call."""
    start = time.process_time()
    act()
    return (time.process_time() - start) * 1e3


def measured(count: int) -> list[float]:
    """The first step of a schedule, then each step after it, the least of some rounds."""
    function = chain(count)
    middle = count // 2 - count // 2 % GUARDED
    rounds = []
    for _ in range(ROUNDS):
        schedule = Schedule(function)
        row = [milliseconds(partial(schedule.parallel, f"b{middle + 1}", f"i{middle + 1}"))]
        for name, step in STEPS.items():
            place = middle if name == "branch removal" else middle + 1
            fork = schedule.fork()
            row.append(milliseconds(partial(step, fork, place)))
        rounds.append(row)
    return [max(column) if n == 0 else min(column) for n, column in enumerate(zip(*rounds, strict=True))]


def table(counts: Sequence[int] = COUNTS) -> str:
    """One row for each length, and the exponents."""
    rows = [measured(count) for count in counts]
    lines = [
        f"| statements | first step | {' | '.join(STEPS)} |",
        f"|---|---|{'---|' * len(STEPS)}",
        *(f"| {n} | {' | '.join(f'{ms:.0f}' for ms in row)} |" for n, row in zip(counts, rows, strict=True)),
    ]
    if len(counts) > 1:
        growth = log(counts[-1] / counts[-2])
        powers = [log(b / a) / growth for a, b in zip(rows[-2], rows[-1], strict=True)]
        lines.append(f"| exponent | {' | '.join(f'{power:.2f}' for power in powers)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table([int(word) for word in sys.argv[1:]] or COUNTS))
