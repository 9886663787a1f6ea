"""Many random schedules: how often each primitive is proved, refuted, unknown or does not apply, and why; every trace
is replayed.

    python -m tests.lowering.traces.campaign --schedules 1000 --workers 4
    python -m tests.lowering.traces.campaign --schedules 1000 --small   sizes at which unknowns can be run and judged

Whatever is unknown and, as far as runs can tell, right, is a gap: with --folder it is written there as the text of a
rewrite.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.attack.judge import judge
from tests.lowering.small_operators import NAMES, small
from tests.lowering.traces.traces import Attempt, Tried, proposal, random_schedule, replayed

from layoutproof.ir.notations.rewrite_text import LitmusHeader, rewrite_text
from layoutproof.verify.verdict.verdict import Status

KEPT = 4
"""Gaps of one kind that are written."""


@dataclass
class Tally:
    """What came of some schedules."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    lengths: Counter[int] = field(default_factory=Counter)
    slowest: list[tuple[float, str]] = field(default_factory=list)
    gaps: list[tuple[str, str]] = field(default_factory=list)  # the kind, the rewrite's text
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Add another tally to this one."""
        self.counts += other.counts
        self.causes += other.causes
        self.seconds.update(other.seconds)
        self.lengths += other.lengths
        self.slowest = sorted(self.slowest + other.slowest, reverse=True)[:10]
        self.gaps += other.gaps
        self.wrong += other.wrong


def schedules(seeds: Sequence[int], small_ones: bool, search: bool, replays: bool) -> Tally:
    """Random schedules by their seeds."""
    tally = Tally()
    for seed in seeds:
        program = small(Random(seed).choice(NAMES)) if small_ones else None
        made = random_schedule(seed, search=search, program=program)
        _count(made, seed, small_ones, tally)
        if replays:
            _replay(made, seed, tally)
    return tally


def _count(made: Tried, seed: int, judged: bool, tally: Tally) -> None:
    tally.lengths[len(made.schedule.steps)] += 1
    for number, attempt in enumerate(made.attempts):
        primitive = attempt.transform.primitive
        tally.counts[primitive, attempt.status] += 1
        tally.seconds[primitive] += int(attempt.seconds * 1000)
        tally.slowest.append((attempt.seconds, f"seed {seed}, {made.operator}, attempt {number}: {attempt.transform}"))
        if attempt.status != Status.PROVED.value:
            told = _told(attempt, seed) if judged and attempt.status == Status.UNKNOWN.value else ""
            reason = (
                attempt.why.rpartition(" is not decided: ")[2]
                if attempt.status == Status.UNKNOWN.value
                else attempt.why
            )
            tally.causes[f"{attempt.status}{told} {primitive}: {' '.join(reason.split())[:260]}"] += 1
            if told == " (right)":
                about = " ".join(f"{primitive}: {attempt.transform}; seed {seed}; {reason}".split())
                tally.gaps.append((primitive, rewrite_text(proposal(attempt), LitmusHeader(about=about))))
    tally.slowest = sorted(tally.slowest, reverse=True)[:10]


def _told(attempt: Attempt, seed: int) -> str:
    """What runs say of a step that is not decided."""
    found = judge(proposal(attempt), Random(seed), trials=12)
    if found.difference is not None:
        return " (wrong)"
    return " (right)" if found.valid > 0 else " (no run)"


def _replay(made: Tried, seed: int, tally: Tally) -> None:
    again = replayed(made.schedule)
    if again.func != made.schedule.func or again.certificate.document != made.schedule.certificate.document:
        tally.wrong.append(f"seed {seed}, {made.operator}: the replayed schedule differs: {made.schedule.trace}")


def report(tally: Tally, seconds: float) -> str:
    """What came of it, as text."""
    number, steps = sum(tally.lengths.values()), sum(n * count for n, count in tally.lengths.items())
    statuses = sorted({status for _, status in tally.counts})
    lines = [
        f"{number} schedules of {steps} proved steps in {seconds:.0f} s; {len(tally.wrong)} replays differ",
        f"{'':<40}{''.join(f'{status:>16}' for status in statuses)}{'seconds':>10}",
    ]
    for primitive in sorted({name for name, _ in tally.counts}):
        row = "".join(f"{tally.counts[primitive, status]:>16}" for status in statuses)
        lines.append(f"{primitive:<40}{row}{tally.seconds[primitive] / 1000:>10.1f}")
    total = "".join(f"{sum(n for (_, s), n in tally.counts.items() if s == status):>16}" for status in statuses)
    lines += [f"{'all':<40}{total}{sum(tally.seconds.values()) / 1000:>10.1f}", "the slowest:"]
    lines += [f"  {taken:>6.1f} s  {what[:200]}" for taken, what in tally.slowest]
    lines += [
        "what was not kept, by cause:",
        *(f"  {count:>5}  {cause}" for cause, count in tally.causes.most_common(120)),
    ]
    return "\n".join([*lines, *(f"WRONG {each}" for each in tally.wrong)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign; 1 where a replay differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=1_000)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--seed", type=int, default=0, help="of the first schedule")
    parser.add_argument("--small", action="store_true", help="small extents; what is unknown is run")
    parser.add_argument("--search", action="store_true", help="look for counterexamples of what is refused")
    parser.add_argument("--no-replay", action="store_true")
    parser.add_argument("--folder", type=Path, default=None, help="where gaps go")
    options = parser.parse_args(arguments)
    seeds = range(options.seed, options.seed + options.schedules)
    shares = [list(seeds[start : start + 5]) for start in range(0, len(seeds), 5)]
    tally, start = Tally(), time.perf_counter()
    with ProcessPoolExecutor(options.workers) as pool:
        count = len(shares)
        for part in pool.map(
            schedules, shares, [options.small] * count, [options.search] * count, [not options.no_replay] * count
        ):
            tally.add(part)
            print(
                f"{time.perf_counter() - start:.0f} s: {sum(tally.lengths.values())} schedules",
                file=sys.stderr,
                flush=True,
            )
    print(report(tally, time.perf_counter() - start))
    if options.folder is not None:
        _write(tally, options.folder)
    return 1 if tally.wrong else 0


def _write(tally: Tally, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    written: Counter[str] = Counter()
    for kind, text in sorted(tally.gaps, key=lambda gap: len(gap[1])):
        if written[kind] < KEPT:
            (folder / f"{kind}_{written[kind]}.py").write_text(text, encoding="utf-8")
            written[kind] += 1


if __name__ == "__main__":
    sys.exit(main())
