"""Two implementations of the kernel's arithmetic on the same proofs, whole and damaged, and others that judge them.

    python -m tests.oracle.integers --count 10000 --seed 7

All questions about integers that the kernel asks of `proofs/accepted` and of the examples are recorded with their
proofs, and random ones are added. Both implementations judge each, then each of `--count` proofs of which one field was
changed. Of what both accept, z3 looks for a solution, and Coq, where it is installed (`apt install coq`), makes a proof
of its own kind of it. The exit code is 1 if two answers differ, if there is a solution, or if Coq refuses a proof.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.oracle.integers import coq
from tests.oracle.integers.damage import damaged
from tests.oracle.integers.items import Item, build, first_answer, second_answers, word
from tests.oracle.integers.recorded import ACCEPTED, of_examples, of_random_questions, of_rewrites
from tests.oracle.integers.truth import solution

_SHOWN = 5
_AT_ONCE = 100  # proofs in one file of Coq


@dataclass
class Compared:
    """What the two said: the pairs of answers by their number, what both accept, and where they differ."""

    answers: Counter[tuple[str, str]] = field(default_factory=Counter)
    accepted: list[Item] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)


def compare(program: Path, items: Sequence[Item]) -> Compared:
    """Both answers on each item. Where one of them gave up, the other one's answer is no difference."""
    found = Compared()
    for item, second in zip(items, second_answers(program, items), strict=True):
        first = first_answer(item)
        words = word(first), word(second)
        found.answers[words] += 1
        if words == ("accept", "accept"):
            found.accepted.append(item)
        elif "limit" not in words and words[0] != words[1]:
            found.differences.append(f"the kernel: {first}\nthe second: {second}\n{json.dumps(item)}")
    return found


def judged_by_z3(items: Sequence[Item]) -> tuple[Counter[str], list[str]]:
    """The answers of z3 on the questions by their number, and those that have a solution."""
    answers: Counter[str] = Counter()
    false: list[str] = []
    for text in dict.fromkeys(json.dumps(item[:3]) for item in items):
        said = solution(json.loads(text))
        answers[said if said in ("none", "unknown") else "solution"] += 1
        if said not in ("none", "unknown"):
            false.append(f"{said}\n{text}")
    return answers, false


def judged_by_coq(items: Sequence[Item], folder: Path) -> tuple[int, list[str]]:
    """How many sums Coq was asked about, and the proofs that it refuses."""
    leaves, wrong = 0, []
    for start in range(0, len(items), _AT_ONCE):
        scripts = {str(number): coq.Script(item) for number, item in enumerate(items[start : start + _AT_ONCE])}
        leaves += sum(script.leaves for script in scripts.values())
        refused = coq.refused({name: script.lines for name, script in scripts.items()}, folder)
        wrong += [f"{said}\n{json.dumps(scripts[name].item)}" for name, said in refused.items()]
    return leaves, wrong


def _said(title: str, problems: Sequence[str]) -> bool:
    """Print the first problems; whether there is any."""
    for problem in problems[:_SHOWN]:
        print(f"\n{title}\n{problem}")
    return bool(problems)


def _run(options: argparse.Namespace, seed: int, folder: Path) -> Iterator[bool]:
    """Whether there are problems, after each part."""
    start = time.perf_counter()

    def tell(words: str) -> None:
        print(f"{time.perf_counter() - start:5.0f} s  {words}", flush=True)

    items = of_rewrites(sorted(ACCEPTED.glob("*.py")))
    tell(f"{len(items)} proofs recorded from proofs/accepted")
    items += of_examples()
    tell(f"{len(items)} with the examples")
    items += of_random_questions(str(seed), options.random)
    tell(f"{len(items)} with random questions")
    program, random = build(folder), Random(seed)
    whole = compare(program, items)
    tell(f"as they are: {_counts(whole.answers)}")
    yield _said("different answers:", whole.differences)
    broken = [damaged(random, random.choice(items)) for _ in range(options.count)]
    found = compare(program, [each.item for each in broken])
    tell(f"with one field changed: {_counts(found.answers)}")
    yield _said("different answers:", found.differences)
    answers, false = judged_by_z3([*whole.accepted, *found.accepted])
    tell(f"solutions of what both accept, by z3: {_counts(answers)}")
    yield _said("accepted, and there is a solution:", false)
    if not coq.is_installed():
        tell("coqc is not installed: Coq is not asked")
        return
    both = [*whole.accepted, *found.accepted]
    leaves, refused = judged_by_coq(random.sample(both, min(options.coq, len(both))), folder)
    tell(
        f"proofs of what both accept, by Coq: {min(options.coq, len(both))} with {leaves} sums, {len(refused)} refused"
    )
    yield _said("accepted, and Coq refuses it:", refused)


def _counts(answers: Counter[str] | Counter[tuple[str, str]]) -> str:
    return ", ".join(
        f"{count} {answer if isinstance(answer, str) else '/'.join(answer)}" for answer, count in answers.most_common()
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign; 1 where something is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.oracle.integers", description=__doc__.split("\n")[0] if __doc__ else None
    )
    parser.add_argument("--count", type=int, default=10_000, help="damaged proofs")
    parser.add_argument("--random", type=int, default=400, help="random questions")
    parser.add_argument("--coq", type=int, default=1_000, help="proofs that Coq is asked about")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fresh", action="store_true", help="another seed every time")
    options = parser.parse_args(arguments)
    seed = time.time_ns() % (1 << 40) if options.fresh else options.seed
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        return 1 if any(list(_run(options, seed, Path(folder)))) else 0


if __name__ == "__main__":
    sys.exit(main())
