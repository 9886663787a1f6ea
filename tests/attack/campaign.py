"""The attack: random rewrites and mutants through the checker; whatever it accepts is run and compared.

    python -m tests.attack.campaign --fresh --rewrites 10000 --mutants 10000 --workers 4

Reports accepted rewrites that the interpreter can tell apart and accepted mutants that change the result (both must be
0), the share of legal rewrites that is proved, and why the others are not. Whatever is wrong is written to a folder as
the text of a rewrite.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.notations.rewrite_text import LitmusHeader, rewrite_text
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.visit import free_variables
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status, Verdict
from tests.attack.judge import judge
from tests.attack.mutants import mutant
from tests.attack.nests import Program, rewrite_of
from tests.attack.padded import padded_case
from tests.attack.programs import Generator
from tests.attack.relayout import relayout
from tests.attack.rewrites import LOOPS, STAGES, VALUES, Rewriter
from tests.attack.schedules import random_schedule

KINDS: tuple[Rewriter, ...] = (*LOOPS, *STAGES, *VALUES, relayout, relayout, relayout)
LARGEST = 4096
"""Symbolic extents are at most this: index arithmetic near the end of 32 bits is not what is attacked here."""


@dataclass(frozen=True)
class Attempt:
    """A rewrite; `legal`: it is known to be right."""

    what: str
    rewrite: Rewrite
    legal: bool


@dataclass
class Tally:
    """What came of some attempts."""

    counts: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[str, str]] = field(default_factory=list)  # what is wrong, the rewrite's text
    seconds: list[float] = field(default_factory=list)  # of each check of a legal rewrite

    def add(self, other: Tally) -> None:
        """Add another tally to this one."""
        self.counts += other.counts
        self.causes += other.causes
        self.wrong += other.wrong
        self.seconds += other.seconds

    @property
    def share(self) -> float:
        """The share of legal rewrites that is proved."""
        return self.counts["legal proved"] / max(1, self.counts["legal"])


def attempts(rng: Random) -> Iterator[Attempt]:
    """Random rewrites, without end."""
    generator = Generator(rng)
    while True:
        kind = rng.random()
        if kind < 0.2:
            case = padded_case(rng)
            yield Attempt(f"padded: {case.what}", case.rewrite, case.legal)
        elif kind < 0.35:
            for what, rewrite in random_schedule(rng):
                yield Attempt(what, rewrite, False)
        else:
            made = nest_rewrite(generator, rng)
            if made is not None:
                yield Attempt(*made, True)


def nest_rewrite(generator: Generator, rng: Random) -> tuple[str, Rewrite] | None:
    """One to four legal rewrites of a random program, as one."""
    program: Program = generator.program()
    new, done = program, []
    for _ in range(rng.choice([1, 1, 2, 3, 4])):
        rewriter = rng.choice(KINDS)
        changed = rewriter(new, rng)
        if changed is not None:
            new = changed
            done.append(rewriter.__name__)
    return (" ".join(done), rewrite_of(program, new)) if done else None


def assumed_of(rewrite: Rewrite) -> Expr | None:
    """Symbolic extents are not huge."""
    names = {v for b in rewrite.old.buffers for e in b.shape for v in free_variables(e)}
    return Var("n") <= LARGEST if Var("n") in names else None


def verdicts_on(rewrite: Rewrite, search: bool) -> tuple[Verdict, ...] | None:
    """What the checker says; None where it refuses a malformed witness outright."""
    try:
        where = assumed_of(rewrite)
        return check_rewrite(rewrite, where) if search else prove_rewrite(rewrite, where).verdicts
    except LayoutproofError:
        return None


def attack(seed: int, rewrites: int, mutants: int) -> Tally:
    """Attempts until enough rewrites were accepted and enough mutants that change the result were tried."""
    rng, tally = Random(seed), Tally()
    for attempt in attempts(rng):
        if tally.counts["accepted"] < rewrites:
            _try(attempt, rng, tally)
        for _ in range(2):
            if tally.counts["mutants that change the result"] < mutants:
                _try_mutant(attempt, rng, tally)
        if tally.counts["accepted"] >= rewrites and tally.counts["mutants that change the result"] >= mutants:
            break
    return tally


def _try(attempt: Attempt, rng: Random, tally: Tally) -> None:
    start = time.perf_counter()
    verdicts = verdicts_on(attempt.rewrite, search=attempt.legal)
    tally.counts["legal" if attempt.legal else "other"] += 1
    if attempt.legal:
        tally.seconds.append(time.perf_counter() - start)
    status = Status.UNKNOWN if verdicts is None else worst(v.status for v in verdicts)
    if verdicts is not None and status in (Status.PROVED, Status.VACUOUS):
        tally.counts["accepted"] += 1
        tally.counts["legal proved"] += attempt.legal
        fast_math = frozenset(name for v in verdicts for name in v.strictness)
        tally.counts[f"accepted under {' '.join(sorted(fast_math)) or 'no fast-math assumption'}"] += 1
        found = judge(attempt.rewrite, rng, trials=24, where=assumed_of(attempt.rewrite), fast_math=fast_math)
        if found.difference is not None:
            _report(tally, "accepted, and the runs differ", attempt.what, attempt.rewrite, str(found.difference))
    elif attempt.legal:
        refused = next((v for v in verdicts or () if v.status is not Status.PROVED), None)
        if status is Status.REFUTED:
            _report(
                tally,
                "legal, and refuted",
                attempt.what,
                attempt.rewrite,
                str(refused.reason if refused is not None else ""),
            )
        tally.causes[_cause(attempt, refused)] += 1


def _cause(attempt: Attempt, verdict: Verdict | None) -> str:
    if verdict is None:
        return f"{attempt.what}: malformed"
    reason = str(verdict.reason)
    return f"{verdict.status} [{verdict.engine}] {attempt.what}: {verdict.claim.text}: {reason}"


def _try_mutant(attempt: Attempt, rng: Random, tally: Tally) -> None:
    made = mutant(attempt.rewrite, rng)
    if made is None:
        return
    name, rewrite = made
    tally.counts["mutants"] += 1
    where = assumed_of(rewrite)
    changes = judge(rewrite, rng, trials=12, where=where).difference is not None
    verdicts = verdicts_on(rewrite, search=False)
    accepted = verdicts is not None and worst(v.status for v in verdicts) in (Status.PROVED, Status.VACUOUS)
    if accepted and verdicts is not None:
        tally.counts["mutants accepted"] += 1
        fast_math = frozenset(flag for v in verdicts for flag in v.strictness)
        found = judge(rewrite, rng, trials=24, where=where, fast_math=fast_math)
        if found.difference is not None:
            _report(
                tally,
                "mutant accepted, and the runs differ",
                f"{name} of {attempt.what}",
                rewrite,
                str(found.difference),
            )
        elif changes:
            tally.counts["mutants that change what their fast-math assumptions leave open"] += 1
            changes = False
    tally.counts["mutants that change the result"] += changes
    if changes:
        tally.counts[f"mutant {name}"] += 1


def _report(tally: Tally, wrong: str, what: str, rewrite: Rewrite, why: str) -> None:
    tally.counts[wrong] += 1
    about = " ".join(f"{wrong}: {what}: {why}".split())
    tally.wrong.append((about, rewrite_text(rewrite, LitmusHeader(about=about))))


# ---- the command


def report(tally: Tally, folder: Path) -> str:
    """What came of it, as text; what is wrong goes to the folder."""
    counts = tally.counts
    seconds = sorted(tally.seconds) or [0.0]
    lines = [
        f"accepted rewrites                      {counts['accepted']}",
        f"  that the interpreter tells apart     {counts['accepted, and the runs differ']}",
        f"mutants that change the result         {counts['mutants that change the result']} of {counts['mutants']}",
        f"  accepted                             {counts['mutant accepted, and the runs differ']}",
        (
            f"legal rewrites proved                  {counts['legal proved']} of {counts['legal']} "
            f"({100 * tally.share:.2f} %)"
        ),
        f"  refuted                              {counts['legal, and refuted']}",
        f"a check of a legal rewrite             median {seconds[len(seconds) // 2] * 1000:.0f} ms, 99 % below "
        f"{seconds[len(seconds) * 99 // 100] * 1000:.0f} ms, longest {seconds[-1]:.1f} s",
    ]
    lines += [
        f"  {name:<60} {number}"
        for name, number in sorted(counts.items())
        if name.startswith(("accepted under", "mutant "))
    ]
    if tally.causes:
        lines.append("legal rewrites that are not proved, by cause:")
        lines += [f"  {number:>5}  {cause[:300]}" for cause, number in tally.causes.most_common(40)]
    for number, (about, text) in enumerate(tally.wrong):
        path = folder / f"wrong_{number}.py"
        path.write_text(text, encoding="utf-8")
        lines.append(f"WRONG {path}: {about[:300]}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign; 1 where anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rewrites", type=int, default=10_000, help="accepted rewrites to run")
    parser.add_argument("--mutants", type=int, default=10_000, help="mutants that change the result to try")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fresh", action="store_true", help="another seed every time")
    parser.add_argument(
        "--folder", type=Path, default=None, help="where wrong cases go (default: a new temporary folder)"
    )
    options = parser.parse_args(arguments)
    seed = time.time_ns() % (1 << 32) if options.fresh else options.seed
    folder = options.folder if options.folder is not None else Path(tempfile.mkdtemp(prefix="attack-"))
    folder.mkdir(parents=True, exist_ok=True)
    # Small shares, so that no worker is left with most of the work.
    shares = max(1, min(options.workers * 8, options.rewrites // 25))
    each = [-(-n // shares) for n in (options.rewrites, options.mutants)]
    tally, start = Tally(), time.perf_counter()
    with ProcessPoolExecutor(options.workers) as pool:
        for part in pool.map(attack, [seed + k for k in range(shares)], [each[0]] * shares, [each[1]] * shares):
            tally.add(part)
            done = (
                f"{tally.counts['accepted']} accepted, {tally.counts['mutants that change the result']} mutants, "
                f"{len(tally.wrong)} wrong"
            )
            print(f"{time.perf_counter() - start:.0f} s: {done}", file=sys.stderr, flush=True)
    print(f"seed {seed}, {shares} shares, {time.perf_counter() - start:.0f} s")
    print(report(tally, folder))
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
