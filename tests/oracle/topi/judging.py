"""Wrong mutants of what TVM made: a program after with one thing changed, so that a run gives another result. None may
be proved.

`python -m tests.oracle.topi.judging FILE --each 2` reads pairs as `pairs` prints them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from tests.attack.compare_judge import case_of, difference
from tests.attack.compare_mutants import mutants
from tests.oracle.topi.asking import ask_all


def told_apart(before: PrimFunc, after: PrimFunc, seed: int) -> str | None:
    """What tells two programs of the same parameters apart; None where no run does, or none can be made."""
    if [b.shape for b in before.buffers] != [b.shape for b in after.buffers]:
        return None
    try:
        return difference(case_of(before, after, {}, {}), Random(seed), trials=4)
    except ValueError:
        return None  # the program before faults on every input


def wrong_mutants(pairs: Sequence[Mapping[str, Any]], each: int, seed: int) -> Iterator[dict[str, Any]]:
    """Up to `each` mutants of each pair that a run tells from the program before, where the pair itself is alike."""
    for pair in pairs:
        try:
            before, after = loads(pair["before"]), loads(pair["after"])
        except LayoutproofError:
            continue  # `asking` counts what cannot be read
        if told_apart(before, after, seed) is not None:
            continue
        made = 0
        for mutant, _ in mutants(after, seed + pair["seed"], 4 * each):
            changed = told_apart(before, mutant.func, seed)
            if changed is not None:
                made += 1
                yield {**pair, "after": print_func(mutant.func), "steps": [mutant.kind], "changed": changed}
            if made == each:
                break


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask about mutants; 1 if one is proved."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.topi.judging")
    parser.add_argument("file", type=Path)
    parser.add_argument("--each", type=int, default=2)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(arguments)
    pairs = [json.loads(line) for line in options.file.read_text().splitlines()]
    wrong = list(wrong_mutants(pairs, options.each, options.seed))
    counts: Counter[str] = Counter()
    proved = []
    for mutant, (verdict, _), _ in ask_all(wrong, options.limit, options.workers):
        counts[verdict] += 1
        counts[f"  {mutant['steps'][0]}: {verdict}"] += 1
        if verdict in ("proved", "vacuous"):
            proved.append(mutant)
    for name, count in sorted(counts.items(), key=lambda item: (item[0].startswith(" "), item[0])):
        print(f"{count:>6}  {name}")
    for mutant in proved:
        print(f"\nPROVED, but {mutant['changed']}\n{mutant['before']}\n{mutant['after']}")
    return 1 if proved else 0


if __name__ == "__main__":
    sys.exit(main())
