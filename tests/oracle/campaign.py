"""Many random programs and schedules against TVM, and a summary of how they differ, if they do.

    python -m tests.oracle --programs 100000 --schedules 20000 --seed 7 --workers 4

Each kind of difference is shown by the smallest program that was found, made smaller as long as it still differs. The
exit code is 1 if there is any difference.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from tests.oracle.comparing import Comparer, Difference
from tests.oracle.scheduling import compare_schedules
from tests.oracle.shrink import shrunk
from tests.random.typed_expressions import FEATURES
from tests.random.typed_programs import DOCUMENTED, Program, random_program

BATCH = 100
_EXAMPLES = 3  # of each kind, the smallest


@dataclass
class Tally:
    """What came of many programs."""

    counts: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[Difference]] = field(default_factory=dict)

    def note(self, counts: Counter[str], differences: Sequence[Difference]) -> None:
        """Add the outcome of a batch."""
        self.counts += counts
        for each in differences:
            self.kinds[each.kind] += 1
            known = [*self.examples.get(each.kind, []), each]
            self.examples[each.kind] = sorted(known, key=lambda d: len(d.program.text))[:_EXAMPLES]

    def add(self, other: Tally) -> None:
        """Add another tally."""
        self.note(other.counts, ())
        self.kinds += other.kinds
        for kind, examples in other.examples.items():
            known = [*self.examples.get(kind, []), *examples]
            self.examples[kind] = sorted(known, key=lambda d: len(d.program.text))[:_EXAMPLES]


def compare_programs(seeds: range, without: frozenset[str]) -> Tally:
    """The programs of some seeds, three ways."""
    tally, comparer = Tally(), Comparer()
    try:
        for start in range(seeds.start, seeds.stop, BATCH):
            batch = [random_program(seed, without) for seed in range(start, min(start + BATCH, seeds.stop))]
            compared = comparer.compare(batch)
            tally.note(Counter(compared.counts), compared.differences)
    finally:
        comparer.close()
    return tally


def smallest(tally: Tally) -> Iterator[Difference]:
    """One difference of each kind, made smaller."""
    comparer = Comparer()
    try:
        for kind, examples in sorted(tally.examples.items()):
            first = examples[0]
            if first.program.runs:
                best = shrunk(first.program, partial(_shows, comparer, kind))
                again = comparer.compare([best]).differences
                first = next((d for d in again if d.kind == kind), first)
            yield first
    finally:
        comparer.close()


def _shows(comparer: Comparer, kind: str, program: Program) -> bool:
    return any(d.kind == kind for d in comparer.compare([program], c=kind.startswith("C ")).differences)


def report(tally: Tally) -> str:
    """What came of it, as text."""
    lines = [f"{count:>8}  {state}" for state, count in tally.counts.most_common()]
    lines.append(f"{sum(tally.kinds.values()):>8}  differences")
    for difference in smallest(tally):
        lines += [
            f"\n{tally.kinds[difference.kind]} times: {difference.kind}",
            difference.what,
            difference.program.text,
        ]
    return "\n".join(lines)


def _pieces(count: int, seed: int, size: int) -> list[range]:
    return [range(start, min(start + size, seed + count)) for start in range(seed, seed + count, size)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign; 1 where there is a difference."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.oracle", description=__doc__.split("\n")[0] if __doc__ else None
    )
    parser.add_argument("--programs", type=int, default=100_000)
    parser.add_argument("--schedules", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed; each program takes one")
    parser.add_argument("--fresh", action="store_true", help="another first seed every time")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    known = ", ".join(FEATURES)
    parser.add_argument(
        "--without",
        default=",".join(sorted(DOCUMENTED)),
        help=f"features to leave out, of {known}; default: %(default)s",
    )
    options = parser.parse_args(arguments)
    without = frozenset(options.without.split(",")) - {""}
    seed = time.time_ns() % (1 << 40) if options.fresh else options.seed
    tally, start, done = Tally(), time.perf_counter(), 0
    print(f"seed {seed}", flush=True)
    with ProcessPoolExecutor(options.workers) as pool:
        work = [pool.submit(compare_programs, piece, without) for piece in _pieces(options.programs, seed, 5 * BATCH)]
        work += [pool.submit(scheduled, piece) for piece in _pieces(options.schedules, seed, BATCH)]
        try:
            for part in (w.result() for w in work):
                tally.add(part)
                done = sum(tally.counts.values())
                print(
                    f"{time.perf_counter() - start:.0f} s: {done} done, {sum(tally.kinds.values())} differences",
                    file=sys.stderr,
                    flush=True,
                )
        except Exception:
            # What is left would run for hours before the error is seen.
            pool.shutdown(cancel_futures=True)
            raise
    print(report(tally))
    return 1 if tally.kinds else 0


def scheduled(seeds: range) -> Tally:
    """Schedules of some seeds, printed and run by TVM."""
    try:
        counts, differences = compare_schedules(seeds)
    except Exception as failure:
        failure.add_note(f"in the schedules of seeds {seeds.start} to {seeds.stop - 1}")
        raise
    tally = Tally()
    tally.note(counts, differences)
    return tally
