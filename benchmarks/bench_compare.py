"""How long a comparison of two programs takes in process: operators that upstream re-laid, those scheduled by hand,
kinds of changes.

Run `python -m benchmarks.bench_compare [FOLDER ...]`, folders being upstream and those of tests/data/compare; figures
are medians of the wall clock over five rounds, solvers loaded. `given` is with layouts and pad values, `found` without;
in both everything is looked for and proved anew.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.lowering.compare.pairs import Pair, pairs, upstream

from layoutproof.verify.checker import prover_at

ROUNDS = 5
GROUPS: Mapping[str, tuple[str, Callable[[], tuple[Pair, ...]]]] = {
    "upstream": ("Upstream's transform of real operators", upstream),
    "must": ("Operators scheduled by hand", lambda: pairs("must")),
    "hand": ("Kinds of changes", lambda: pairs("hand")),
    "kinds": ("More kinds of changes", lambda: pairs("kinds")),
    "defects": ("Defects", lambda: pairs("defects")),
}


@dataclass(frozen=True, slots=True)
class Timed:
    """What was said, and seconds: of the first time and the middle one. The first has nothing remembered of values."""

    said: str
    first: float
    median: float


def timed(pair: Pair, given: bool) -> Timed:
    """One way to ask about a pair."""
    prover_at.cache_clear()
    seconds, said = list[float](), ""
    for _ in range(ROUNDS):
        start = time.perf_counter()
        found = pair.compared(given=given)
        seconds.append(time.perf_counter() - start)
        said = " ".join([found.status.value, *found.strictness])
    return Timed(said, seconds[0], statistics.median(seconds))


def row(pair: Pair) -> tuple[str, list[float]]:
    """A line of the table, and its medians."""
    given = timed(pair, True)
    found = timed(pair, False) if pair.layouts or pair.pads else None
    cells = [f"`{pair.name}`"]
    for each in (given, found):
        cells += (
            [each.said, f"{1e3 * each.first:.0f}", f"{1e3 * each.median:.0f}"] if each is not None else ["", "", ""]
        )
    return f"| {' | '.join(cells)} |", [each.median for each in (given, found) if each is not None]


def table(folders: Sequence[str] = ("upstream", "must", "hand", "kinds")) -> str:
    """All tables, in milliseconds."""
    parts: list[str] = []
    for folder in folders:
        title, made = GROUPS[folder]
        lines = [
            "| pair | layouts given | first, ms | median, ms | layouts found | first, ms | median, ms |",
            "|---|---|---|---|---|---|---|",
        ]
        medians = list[float]()
        for pair in made():
            line, found = row(pair)
            lines.append(line)
            medians += found
        middle, longest = 1e3 * statistics.median(medians), 1e3 * max(medians)
        parts.append(f"{title}: median over all {middle:.0f} ms, longest {longest:.0f} ms.\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    print(table(sys.argv[1:]) if sys.argv[1:] else table(), end="")
