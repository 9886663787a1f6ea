"""The attack on the kernel: rewrites with something wrong in a program, in the witness or in the evidence. What it
accepts is run and compared.

    python -m tests.attack.kernel_campaign --wrong 2000 --seed 1

Reports how many wrong rewrites there were, and every one that was accepted in full, which must be none.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.notations.rewrite_text import parse_rewrite, rewrite_text
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.text import expr_text
from layoutproof.ir.wellformed import check_wellformed
from layoutproof.verify.certificate.finder.kernel_evidence import Found, evidence_for
from layoutproof.verify.kernel.judge import judged_in_turn
from layoutproof.verify.kernel.reader import read_rewrite
from layoutproof.verify.kernel.rejected import Rejected
from tests.attack.campaign import assumed_of, nest_rewrite
from tests.attack.judge import judge as told_apart
from tests.attack.mutants import mutant
from tests.attack.padded import padded_case
from tests.attack.programs import Generator

_TOKEN = re.compile(r"//|[<>=!]=|[-+*%<>]|\b\d+\b(?!\))|\b[a-zA-Z]\w*\b|-0\.0|\b\d+\.\d+\b")
_SWAPS = {"+": "-", "-": "+", "*": "+", "//": "%", "%": "//", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!="}
_WORDS = {"and": "or", "or": "and", "serial": "parallel", "grid": "grid", "min": "max", "max": "min", "Select": "max"}
_EXTRAS = (
    "{S} + {t}(0)", "{S} - {t}(0)", "{S} * {t}(1)", "{S} + {t}(-0.0)", "{S}", "T.max({S}, {t}(0))", "{t}(0)", "-{S}",
    "T.if_then_else({z} < 2, {S}, {t}(3))", "T.Select({z} >= 0, {S}, {t}(3))", "{S} + {t}(0) * {S}",
    "T.max({t}(0), {S})",
)  # fmt: skip


@dataclass
class Tally:
    """What came of some attempts."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[str, str]] = field(default_factory=list)


def right_rewrites(rng: Random) -> Iterator[Rewrite]:
    """Random rewrites, most of which are right, without end."""
    generator = Generator(rng)
    while True:
        made = ("padded", padded_case(rng).rewrite) if rng.random() < 0.2 else nest_rewrite(generator, rng)
        if made is not None and len(rewrite_text(made[1])) < 4000:
            yield made[1]


def damaged_text(text: str, rng: Random) -> str:
    """One token of a rewrite's text is another one, or a line stands twice, elsewhere, or not at all."""
    lines = text.split("\n")
    where = rng.randrange(len(lines))
    if rng.random() < 0.2:
        line = lines.pop(where)
        for _ in range(rng.choice([0, 1, 1, 2])):
            lines.insert(rng.randrange(max(where - 3, 0), min(where + 4, len(lines)) + 1), line)
        return "\n".join(lines)
    found = [m for m in _TOKEN.finditer(text) if m[0] in _SWAPS or m[0] in _WORDS or m[0].isdigit() or len(m[0]) < 3]
    chosen = rng.choice(found)
    word = chosen[0]
    if word.isdigit():
        new = str(max(int(word) + rng.choice([-1, 1, 1, 2]), 0))
    else:
        new = _SWAPS.get(word) or _WORDS.get(word) or rng.choice(found)[0]
    return text[: chosen.start()] + new + text[chosen.end() :]


def with_extra(rewrite: Rewrite, text: str, rng: Random) -> str:
    """The text with a loop after all else that stores something to a buffer."""
    buffer = rng.choice(rewrite.new.buffers)
    names = [f"z{axis}" for axis in range(len(buffer.shape))]
    shape = ", ".join(expr_text(extent) for extent in buffer.shape)
    cell = f"{buffer.name}[{', '.join(names)}]"
    value = rng.choice(_EXTRAS).format(S=cell, t=f"T.{buffer.dtype}", z=rng.choice(names))
    return f"{text.rstrip()}\n    for {', '.join(names)} in T.grid({shape}):\n        {cell} = {value}\n"


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
        yield "extra", with_extra(rewrite, text, rng), text


def is_accepted(text: str, evidence_of: str, with_copies: bool = False) -> bool | None:
    """Whether all claims are accepted; None where the text is not read."""
    try:
        given = evidence_for(evidence_of, Found(), with_copies=with_copies)
        return all(claim.is_accepted for claim in judged_in_turn(read_rewrite(text), given))
    except (Rejected, LayoutproofError):
        return None


def attack(seed: int, wrong: int) -> Tally:
    """Attempts until so many of them were wrong."""
    rng, tally = Random(seed), Tally()
    for what, text, before in attempts(rng):
        if tally.counts["wrong"] >= wrong:
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


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--wrong", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    tally = attack(given.seed, given.wrong)
    print(dict(sorted(tally.counts.items())))
    for what, text in tally.wrong:
        print(f"==== accepted: {what}\n{text}")
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
