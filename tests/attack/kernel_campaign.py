"""The attack on the kernel: rewrites with something wrong in a program, in the witness or in the evidence, and real
certificates damaged in one place. What it accepts is run and compared.

    python -m tests.attack.kernel_campaign --wrong 2000 --seed 1
    python -m tests.attack.kernel_campaign --seconds 3600 --workers 4
    python -m tests.attack.kernel_campaign --damaged 10000 --workers 4 --log damaged.jsonl

Reports how many attempts there were, and every one that was accepted in full although it states something false, which
must be none.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.notations.rewrite_text import parse_rewrite, rewrite_text
from layoutproof.ir.wellformed import check_wellformed
from layoutproof.verify.certificate.finder.kernel_evidence import Found, evidence_for
from layoutproof.verify.kernel.judge import judged_in_turn
from layoutproof.verify.kernel.reader import read_rewrite
from layoutproof.verify.kernel.rejected import Rejected
from tests.attack.campaign import assumed_of
from tests.attack.judge import judge as told_apart
from tests.attack.kernel_damage import Tally, damage_many
from tests.attack.kernel_texts import (
    damaged_text,
    right_rewrites,
    with_cells,
    with_choice,
    with_constant,
    with_extra,
    with_let,
)
from tests.attack.mutants import mutant


def attempts(rng: Random) -> Iterator[tuple[str, str, str]]:
    """What was done, the text of a rewrite, and that of the one that it was made from."""
    for rewrite in right_rewrites(rng):
        text = rewrite_text(rewrite)
        yield "nothing", text, text
        for _ in range(3):
            mutated = mutant(rewrite, rng)
            if mutated is not None:
                yield mutated[0], rewrite_text(mutated[1]), text
            yield "text", damaged_text(text, rng), text
        yield "let", with_let(text, rng), text
        yield "choice", with_choice(text, rng), text
        yield "extra", with_extra(rewrite, text, rng), text
        yield "constant", with_constant(rewrite, text, rng), text
        cells = with_cells(rng)
        yield "cells", cells, cells


def is_accepted(text: str, evidence_of: str, with_copies: bool = False) -> bool | None:
    """Whether all claims are accepted; None where the text is not read."""
    try:
        given = evidence_for(evidence_of, Found(), with_copies=with_copies)
        return all(claim.is_accepted for claim in judged_in_turn(read_rewrite(text), given))
    except (Rejected, LayoutproofError):
        return None


def attack(seed: int, wrong: int, seconds: float = float("inf")) -> Tally:
    """Attempts until so many of them were wrong, or so many seconds passed."""
    rng, tally, end = Random(seed), Tally(), time.monotonic() + seconds
    for what, text, before in attempts(rng):
        if tally.counts["wrong"] >= wrong or time.monotonic() > end:
            break
        _try(what, text, before, rng, tally)
    return tally


def _try(what: str, text: str, before: str, rng: Random, tally: Tally) -> None:
    try:
        rewrite = parse_rewrite(text)
    except LayoutproofError:
        return
    if check_wellformed(rewrite.old) or check_wellformed(rewrite.new):
        return
    evidence_of = before if what != "nothing" and rng.random() < 0.3 else text
    accepted = is_accepted(text, evidence_of, rng.random() < 0.3)
    tally.counts["accepted" if accepted else "rejected"] += 1
    try:
        difference = told_apart(rewrite, rng, trials=40 if accepted else 6, where=assumed_of(rewrite)).difference
    except LayoutproofError:  # a record that fits no array: nothing can be run
        tally.counts["not run"] += 1
        return
    if difference is not None:
        tally.counts["wrong"] += 1
        tally.counts[f"wrong: {what}"] += 1
        if accepted:
            tally.wrong.append((f"{what}: {difference}", text))


def _attack(arguments: tuple[int, int, float]) -> Tally:
    return attack(*arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--wrong", type=int, help="wrong rewrites to try, 2000 where nothing else is asked for")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="try wrong rewrites for so long at most")
    parser.add_argument("--damaged", type=int, metavar="N", help="damage real certificates in N places instead")
    parser.add_argument("--log", type=Path, help="where finished damages are noted; those in it are not done again")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args(arguments)
    if given.damaged is not None:
        tally = damage_many(given.seed, given.damaged, given.workers, given.log)
    else:
        most = given.wrong if given.wrong is not None else 2000 if given.seconds == float("inf") else sys.maxsize
        share = -(-most // given.workers)
        seeds = [(given.seed + number, share, given.seconds) for number in range(given.workers)]
        tally = Tally()
        with ProcessPoolExecutor(given.workers) as pool:
            for one in pool.map(_attack, seeds):
                tally.counts += one.counts
                tally.wrong += one.wrong
    print(dict(sorted(tally.counts.items())))
    for what, text in tally.wrong:
        print(f"==== accepted: {what}\n{text}")
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
