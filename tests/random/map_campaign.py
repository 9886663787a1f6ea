"""The long run of random index maps against brute force: `python -m tests.random.map_campaign`, part of `make
campaign`.

Each seed names one map. Seeds are examined in blocks by a pool of processes; finished blocks are kept in a file, so
that a run that was cut off goes on where it was. Every failure prints the map, the claim and the truth. The exit code
is 1 if there is any.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.verify.maps.check_map import check_map
from tests.judging import Complaint, judge, judge_refusal
from tests.oracle import maps as oracle
from tests.random.index_maps import RandomMap, draw_map
from tests.tree import ROOT

DEFAULT_RUN = 2_000
"""Seeds below this are examined by the default tests."""
ALL = 100_000
BLOCK = 250
CRASHES = (ArithmeticError, AssertionError, LookupError, TypeError, ValueError, RuntimeError)
SLOW = 2.0
"""Seconds that no single verdict may take."""


@dataclass
class Outcome:
    """What came of one map: complaints, the engine that decided injectivity, seconds for the full report."""

    seed: int
    title: str
    engine: str
    seconds: float
    complaints: list[str] = field(default_factory=list)


def examine_map(drawn: RandomMap) -> tuple[list[Complaint], str, float]:
    """Complaints about the report on one map, the engine that decided it, and the seconds that the report took."""
    true = oracle.truth(drawn.text, drawn.shape)
    index_map = parse_index_map(drawn.text)
    start = time.perf_counter()
    try:
        report = check_map(index_map, drawn.shape).to_dict()
    except LayoutproofError as refusal:
        return judge_refusal(str(refusal), true), "refused", time.perf_counter() - start
    seconds = time.perf_counter() - start
    if true.negative is not None:
        return (
            [
                Complaint(
                    "accepted below zero", f"a refusal: {true.negative} goes below zero", str(report["physical_shape"])
                )
            ],
            "none",
            seconds,
        )
    complaints = judge(report, true)
    if seconds > SLOW:  # asked again: a machine that was busy with something else is not to blame on the map
        start = time.perf_counter()
        check_map(index_map, drawn.shape)
        seconds = time.perf_counter() - start
    if seconds > SLOW:
        complaints.append(Complaint("slow", f"under {SLOW} s", f"{seconds:.1f} s"))
    return complaints, str(report["injective"]["engine"]), seconds


def examine(seed: int) -> Outcome:
    """What came of the map that `seed` names. An exception of any sort carries the map with it; the usual ones are
    complaints.
    """
    drawn = draw_map(seed)
    try:
        complaints, engine, seconds = examine_map(drawn)
    except CRASHES as problem:
        return Outcome(seed, str(drawn), "none", 0.0, [f"crash: {type(problem).__name__}: {problem}"])
    except BaseException as problem:
        problem.add_note(f"while seed {seed} was examined: {drawn}")
        raise
    return Outcome(seed, str(drawn), engine, seconds, [str(complaint) for complaint in complaints])


def examine_block(first: int) -> tuple[int, list[dict[str, Any]]]:
    """The outcomes of one block of seeds, as plain data."""
    return first, [asdict(examine(seed)) for seed in range(first, first + BLOCK)]


def version() -> str:
    """A name for the code that is examined and examines: finished blocks of other code count for nothing."""
    digest = hashlib.sha256()
    files = [
        *(ROOT / "ir").rglob("*.py"),
        *(ROOT / "verify").rglob("*.py"),
        *(ROOT / "tests").glob("*.py"),
        *(ROOT / "tests" / "random").glob("*.py"),
    ]
    for path in sorted(files):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def read_state(path: Path) -> dict[int, list[Outcome]]:
    """The blocks that an earlier run of the same code finished; a last line that was cut off is left out."""
    current = version()
    done: dict[int, list[Outcome]] = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                block = json.loads(line)
                if block["code"] == current:
                    done[block["first"]] = [Outcome(**outcome) for outcome in block["outcomes"]]
    return done


def percentile(times: list[float], share: float) -> float:
    """The time below which `share` of the sorted times lie, in milliseconds."""
    return times[min(len(times) - 1, int(share * len(times)))] * 1e3 if times else 0.0


def summary(outcomes: Iterable[Outcome]) -> str:
    """Counts of wrong answers by kind, engines, and time percentiles."""
    all_of_them = list(outcomes)
    kinds = Counter(complaint.split(":")[0] for outcome in all_of_them for complaint in outcome.complaints)
    engines = Counter(outcome.engine for outcome in all_of_them)
    times = sorted(outcome.seconds for outcome in all_of_them)
    wrong = sum(bool(outcome.complaints) for outcome in all_of_them)
    lines = [
        f"{len(all_of_them)} maps, {wrong} with a complaint",
        "complaints: " + (", ".join(f"{count} {kind}" for kind, count in kinds.most_common()) or "none"),
        "decided by: " + ", ".join(f"{engine} {count}" for engine, count in engines.most_common()),
        (
            f"milliseconds: p50 {percentile(times, 0.5):.2f}, p99 {percentile(times, 0.99):.2f}, max "
            f"{percentile(times, 1):.2f}"
        ),
    ]
    return "\n".join(lines)


def run(
    blocks: list[int], workers: int, keep: Callable[[int, list[Outcome]], None], patience: float = 300.0
) -> Iterator[int]:
    """Examines the blocks in a pool and hands each to `keep`; yields the number of blocks done.

    Raises multiprocessing.TimeoutError when no block ends for `patience` seconds: something hangs.
    """
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        results = pool.imap_unordered(examine_block, blocks)
        for count in range(1, len(blocks) + 1):
            first, plain = results.next(timeout=patience)
            keep(first, [Outcome(**outcome) for outcome in plain])
            yield count


def main() -> int:
    """Examines the seeds asked for and prints what is wrong; 0 when nothing is."""
    parser = argparse.ArgumentParser(description="Random index maps against brute force.")
    parser.add_argument("--first", type=int, default=0, help="first seed, a multiple of the block size")
    parser.add_argument("--count", type=int, default=ALL, help="how many maps")
    parser.add_argument("--workers", type=int, default=max(1, multiprocessing.cpu_count() - 1))
    parser.add_argument(
        "--state", type=Path, default=Path("build/campaign_maps.jsonl"), help="where finished blocks are kept"
    )
    parser.add_argument("--fresh", action="store_true", help="forget what an earlier run finished")
    options = parser.parse_args()
    options.state.parent.mkdir(parents=True, exist_ok=True)
    if options.fresh:
        options.state.unlink(missing_ok=True)
    wanted = list(range(options.first - options.first % BLOCK, options.first + options.count, BLOCK))
    done = {first: outcomes for first, outcomes in read_state(options.state).items() if first in set(wanted)}
    for outcomes in done.values():
        tell(outcomes)
    start, code = time.perf_counter(), version()
    with options.state.open("a", encoding="utf-8") as state:

        def keep(first: int, outcomes: list[Outcome]) -> None:
            done[first] = outcomes
            state.write(
                json.dumps({"code": code, "first": first, "outcomes": [asdict(outcome) for outcome in outcomes]}) + "\n"
            )
            state.flush()
            tell(outcomes)

        missing = [first for first in wanted if first not in done]
        for _ in run(missing, options.workers, keep):
            progress(len(done), len(wanted), time.perf_counter() - start, done)
    outcomes = [outcome for first in sorted(done) for outcome in done[first]]
    print(f"\n{summary(outcomes)}")
    return int(any(outcome.complaints for outcome in outcomes))


def tell(outcomes: list[Outcome]) -> None:
    """One paragraph for each map with a complaint."""
    for outcome in outcomes:
        if outcome.complaints:
            print(f"\nseed {outcome.seed}: {outcome.title}", *outcome.complaints, sep="\n    ", flush=True)


def progress(done: int, wanted: int, seconds: float, blocks: dict[int, list[Outcome]]) -> None:
    """One line, rewritten in place on a terminal."""
    wrong = sum(bool(outcome.complaints) for outcomes in blocks.values() for outcome in outcomes)
    line = f"{done * BLOCK} of {wanted * BLOCK} maps, {wrong} with a complaint, {seconds:.0f} s"
    if sys.stderr.isatty():
        print(f"\r{line}", end="", file=sys.stderr, flush=True)
    elif done == wanted or done % 40 == 0:
        print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
