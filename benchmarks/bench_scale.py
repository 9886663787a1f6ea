"""How costs grow with the program: of a step that changes one statement in the middle of a chain, of lowering the
chain, and of comparing a product of matrices that was unrolled with its loop.

Run `python -m benchmarks.bench_scale [STATEMENTS ...]` for the steps, with `--lower` or `--unrolled` for the others;
figures are of processor time in one process, which says more than the clock where other work goes on. Of steps it is
the least of some rounds. The first step of a schedule looks at every statement once, and has a column; each other one
is a step of its kind after that. The exponent is that of the number of statements, between the last two rows.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from math import log

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.compare.compare_programs import compare_bit_for_bit
from layoutproof.lowering.schedule.schedule import Schedule

COUNTS = (10, 100, 1000, 5000)
LOWERED = (10, 100, 1000, 5000)
UNROLLED = (64, 216, 512, 1000, 4096)
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
    return "\n".join([*lines, *_exponents(counts, rows)])


def _exponents(counts: Sequence[int], rows: Sequence[Sequence[float]]) -> list[str]:
    if len(counts) < 2:
        return []
    growth = log(counts[-1] / counts[-2])
    powers = [log(b / a) / growth for a, b in zip(rows[-2], rows[-1], strict=True)]
    return [f"| exponent | {' | '.join(f'{power:.2f}' for power in powers)} |"]


def lowering_table(counts: Sequence[int] = LOWERED) -> str:
    """The processor time of reading a chain, and of the whole of `lower` with all its proofs, in milliseconds."""
    rows = []
    for count in counts:
        reading = milliseconds(partial(chain, count))
        rows.append([reading, milliseconds(Schedule(chain(count)).lower)])
    lines = [
        "| statements | read | lower | lower, a statement |",
        "|---|---|---|---|",
        *(f"| {n} | {a:.0f} | {b:.0f} | {b / n:.1f} |" for n, (a, b) in zip(counts, rows, strict=True)),
    ]
    return "\n".join([*lines, *(f"{line} |" for line in _exponents(counts, rows))])


def product(size: int, unrolled: bool) -> PrimFunc:
    """A product of square matrices as one loop nest, or as a statement for each of its iterations."""
    square = f'T.Buffer(({size}, {size}), "float32")'
    loop = [f"for i, j, k in T.grid({size}, {size}, {size}):", "    C[i, j] = C[i, j] + A[i, k] * B[k, j]"]
    every = range(size)
    body = [f"C[{i}, {j}] = C[{i}, {j}] + A[{i}, {k}] * B[{k}, {j}]" for i in every for j in every for k in every]
    return loads(
        "\n".join(
            [
                "@T.prim_func",
                f"def product(A: {square}, B: {square}, C: {square}):",
                '    T.func_attr({"tirx.noalias": True})',
                *(f"    {line}" for line in (body if unrolled else loop)),
            ]
        )
        + "\n"
    )


def unrolled_table(counts: Sequence[int] = UNROLLED) -> str:
    """The processor time of proving that an unrolled product is its loop, and the other way round, bit for bit."""
    rows, said = [], []
    for count in counts:
        size = round(count ** (1 / 3))
        loop = product(size, unrolled=False)
        begun = time.process_time()
        given = product(size, unrolled=True)
        reading = (time.process_time() - begun) * 1e3
        found = []
        row = [reading]
        for before, after in ((loop, given), (given, loop)):
            begun = time.process_time()
            found.append(compare_bit_for_bit(before, after).status.value)
            row.append((time.process_time() - begun) * 1e3)
        rows.append(row)
        said.append(", ".join(dict.fromkeys(found)))
    lines = [
        "| statements | verdict | read | loop, then statements | statements, then loop |",
        "|---|---|---|---|---|",
        *(
            f"| {n} | {verdict} | {' | '.join(f'{ms:.0f}' for ms in row)} |"
            for n, verdict, row in zip(counts, said, rows, strict=True)
        ),
    ]
    return "\n".join([*lines, *(line.replace("exponent |", "exponent |  |") for line in _exponents(counts, rows))])


TABLES = {"--lower": lowering_table, "--unrolled": unrolled_table}

if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:] if word not in TABLES]
    tables = [TABLES[word] for word in sys.argv[1:] if word in TABLES] or [table]
    for made in tables:
        print(made(given) if given else made())
