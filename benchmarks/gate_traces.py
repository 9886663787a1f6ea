"""Logs of candidates as an autotuner leaves them: for each operator of tests/data its program, and beside it schedules,
one a line.

    python -m benchmarks.gate_traces --count 10000 --seed 0 -o DIR

Each log is a search tree: a candidate is an earlier one with a step more, so many begin alike; no two are the same.
Nothing is proved while they are made: steps are tried on the programs, and kept where they apply. One in twenty is made
wrong on purpose, and is not searched further. The same count and seed give the same files.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.lowering.small_operators import NAMES, small, small_text

from benchmarks.gate_moves import GUARDLESS, Move, any_move, wrong_moves
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.schedule.trace import passes_of

LONGEST = 4
WRONG = 0.05
_MOST_TRIES = 2_000


@dataclass(frozen=True, slots=True)
class Candidate:
    """A schedule, and the program that it makes, unless that is wrong."""

    moves: tuple[Move, ...]
    func: PrimFunc | None

    @property
    def line(self) -> str:
        """The schedule as a line of a log."""
        return json.dumps([list(move) for move in self.moves])


def search(name: str, count: int, seed: int) -> Iterator[str]:
    """The lines of an operator's log: `count` different schedules, in the order of the search."""
    rng = Random(f"{seed}:{name}")
    tree, seen, tries = [Candidate((), small(name))], set[str](), 0
    while len(seen) < count:
        tries += 1
        if tries > _MOST_TRIES:
            raise RuntimeError(f"{name}: no new schedule in {_MOST_TRIES:,} tries after {len(seen):,}")
        found = _next(rng.choice(tree), rng)
        if found is None or found.line in seen:
            continue
        tries = 0
        seen.add(found.line)
        yield found.line
        if found.func is not None and len(found.moves) < LONGEST:
            tree.append(found)


def _next(parent: Candidate, rng: Random) -> Candidate | None:
    """The parent with a step more; None where that does not apply."""
    assert parent.func is not None
    if rng.random() < WRONG:
        return Candidate((*parent.moves, *wrong_moves(parent.func, rng)), None)
    move = any_move(parent.func, rng)
    if move is None:
        return None
    try:
        (step,) = passes_of([list(move)])
        func = step.propose(parent.func).new
    except LayoutproofError:
        return None
    if func == parent.func:
        return None
    # Whether a guard may go is for the proof to say, and here there is none: nothing is built on it.
    return Candidate((*parent.moves, move), func if move[0] != GUARDLESS else None)


def write_logs(folder: Path, count: int, seed: int) -> None:
    """Write programs and logs into a folder, `count` lines together, as many of each operator as of the others, give or
    take one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(NAMES):
        share = count // len(NAMES) + (number < count % len(NAMES))
        (folder / f"{name}.py").write_text(small_text(name), encoding="utf-8")
        (folder / f"{name}.jsonl").write_text(
            "".join(f"{line}\n" for line in search(name, share, seed)), encoding="utf-8"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the logs."""
    parser = argparse.ArgumentParser(description="make logs of candidates from real operators")
    parser.add_argument("--count", type=int, default=10_000, help="schedules, over all operators")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, required=True, help="the folder to write")
    options = parser.parse_args(arguments)
    write_logs(options.output, options.count, options.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
