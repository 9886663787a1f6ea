"""The campaign against comparisons: mutants of programs that were compared, each asked about and judged by running it.

    python -m tests.attack.compare_campaign --each 30 --workers 2 --folders upstream must

Of a mutant that changes results it may be said that it is refuted, or nothing; never that it is proved. Of one that
does not, anything but refuted.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.primfunc import IRModule, PrimFunc
from layoutproof.ir.script.printer import print_module
from layoutproof.lowering.compare.comparison import Comparison
from layoutproof.verify.verdict.verdict import Status
from tests.attack.compare_judge import Laid, case_of, difference
from tests.attack.compare_mutants import KINDS, Mutant, mutants, smaller
from tests.lowering.compare.pairs import Pair, names_in, pairs, proved_in, told, upstream


@dataclass(frozen=True)
class Outcome:
    """The verdict on a mutant, and the judge's: `changed` is a difference in words, None if none was seen."""

    pair: str
    kind: str
    status: str
    changed: str | None
    strictness: tuple[str, ...]
    why: str
    seconds: float
    text: str

    @property
    def verdict(self) -> str:
        """The line of the table that it belongs to."""
        return f"{'changed' if self.changed is not None else 'unchanged'} and {self.status}"

    @property
    def wrong(self) -> bool:
        """Whether nobody may say that."""
        return self.verdict in ("changed and proved", "changed and vacuous", "unchanged and refuted")

    def __str__(self) -> str:
        return f"{self.pair}: {self.kind}: {self.verdict} ({self.seconds:.1f} s): {self.changed or ''} | {self.why}"


@dataclass
class Tally:
    """What came of many."""

    outcomes: list[Outcome] = field(default_factory=list)

    def counts(self) -> Counter[str]:
        """How many of each kind."""
        return Counter(outcome.verdict for outcome in self.outcomes)

    @property
    def wrong(self) -> list[Outcome]:
        """What nobody may say."""
        return [outcome for outcome in self.outcomes if outcome.wrong]

    @property
    def gaps(self) -> list[Outcome]:
        """Mutants that change results, and of which nothing is known."""
        return [outcome for outcome in self.outcomes if outcome.verdict == "changed and unknown"]


def laid_out(pair: Pair, found: Comparison | None = None, given: bool = True) -> dict[str, Laid]:
    """The layouts and contracts that hold: those of an answer, else those that the pair gives. Where nobody is told of
    them, a parameter that keeps its shape keeps its layout.
    """
    if found is not None:
        return {each.buffer: Laid(each.index_map, each.pad_value) for each in found.layouts}
    shapes = [{b.name: b.shape for b in func.buffers} for func in (pair.before, pair.after)]
    known = {name for name in pair.layouts if given or shapes[0][name] != shapes[1].get(name)}
    return {name: Laid(pair.layouts[name], pair.pads.get(name)) for name in known}


def judged(
    pair: Pair, after: PrimFunc, laid: dict[str, Laid], seed: int, fast_math: frozenset[str], trials: int = 8
) -> str | None:
    """What tells a program apart from the one before."""
    return difference(case_of(pair.before, after, pair.match, laid), Random(seed), trials=trials, fast_math=fast_math)


def outcome(pair: Pair, mutant: Mutant, small: Pair, variant: Mutant, seed: int, given: bool = True) -> Outcome:
    """Ask about a mutant of a pair, and judge it, at the size `small` where the pair is too large to run."""
    start = time.perf_counter()
    found = pair.with_after(mutant.func).compared(given=given)
    seconds = time.perf_counter() - start
    proved = found.status is Status.PROVED
    laid = laid_out(pair, found if proved else None, given)
    changed = judged(small, variant.func, laid, seed, frozenset(pair.strictness))
    if proved and changed is not None and found.strictness:
        # Fast-math assumptions leave something open: what differs within them is no difference.
        changed = judged(small, variant.func, laid, seed, frozenset(found.strictness), trials=24)
    if found.status is Status.REFUTED and changed is None:
        changed = judged(pair, mutant.func, laid, seed + 1, frozenset(pair.strictness), trials=40)
    text = print_module(IRModule((replace(pair.before, name="before"), replace(mutant.func, name="after"))))
    return Outcome(
        pair.name,
        mutant.kind,
        found.status.value,
        changed,
        found.strictness,
        " ".join(told(found).split())[:600],
        seconds,
        text,
    )


def attack(
    pair: Pair, count: int, seed: int = 0, given: bool = True, among: Sequence[str] = tuple(KINDS)
) -> list[Outcome]:
    """Up to `count` mutants of a pair, of some kinds."""
    small = smaller(pair)
    found: list[Outcome] = []
    for mutant, variant in mutants(pair.after, seed, count, small.after if small is not None else None, among):
        found.append(
            outcome(
                pair,
                mutant,
                small if small is not None else pair,
                variant if variant is not None else mutant,
                seed,
                given,
            )
        )
    return found


def the_pairs(folder: str) -> tuple[Pair, ...]:
    """Upstream's pairs, or those of a folder of tests/data/compare."""
    return upstream() if folder == "upstream" else pairs(folder)


def attack_named(folder: str, name: str, count: int, seed: int, given: bool) -> list[Outcome]:
    """The same for a pair by its name, so that another process can be asked."""
    if is_elsewhere(folder):
        known = proved_in(Path(folder), name)
        return attack(known, count, seed, given) if known is not None else []
    return attack(next(pair for pair in the_pairs(folder) if pair.name == name), count, seed, given)


def is_elsewhere(folder: str) -> bool:
    """Whether a folder is one of pairs with a manifest, wherever it is."""
    return (Path(folder) / "manifest.json").is_file()


def names_of(folder: str) -> list[str]:
    """The names of a folder's pairs."""
    return names_in(Path(folder)) if is_elsewhere(folder) else [pair.name for pair in the_pairs(folder)]


def report(tally: Tally) -> str:
    """The table, with everything that is wrong or open."""
    counts = tally.counts()
    seconds = sorted(o.seconds for o in tally.outcomes) or [0.0]
    changed = sum(number for verdict, number in counts.items() if verdict.startswith("changed"))
    share = 100 * counts["changed and refuted"] / max(changed, 1)
    lines = [
        f"of {changed} mutants that change a result, {share:.1f} % refuted",
        (
            f"{len(tally.outcomes)} mutants; a comparison takes {seconds[len(seconds) // 2]:.2f} s (median), "
            f"{seconds[-1]:.1f} s at most"
        ),
        "",
    ]
    lines += ["| | refuted | unknown | vacuous | proved |", "|---|---|---|---|---|"]
    for which in ("changed", "unchanged"):
        numbers = [str(counts[f"{which} and {status}"]) for status in ("refuted", "unknown", "vacuous", "proved")]
        lines.append(f"| {which} | {' | '.join(numbers)} |")
    kinds = Counter((o.kind, o.verdict) for o in tally.outcomes)
    lines += ["", "by kind:"]
    lines += [f"  {kind:<18} {verdict:<24} {number}" for (kind, verdict), number in sorted(kinds.items())]
    slow = sorted((o for o in tally.outcomes if o.seconds > 3), key=lambda o: -o.seconds)[:12]
    for title, some in (("slow", slow), ("WRONG", tally.wrong), ("open", tally.gaps)):
        lines += [f"{title}: {each}" for each in some]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign; 1 where anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=30, help="mutants of each pair")
    folders = "upstream, those of tests/data/compare, or paths of folders with a manifest.json"
    parser.add_argument("--folders", nargs="*", default=["upstream", "must"], help=folders)
    parser.add_argument("--names", nargs="*", default=[], help="only pairs with these names")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--found", action="store_true", help="with layouts and pad values not given")
    parser.add_argument("--keep", type=Path, help="a folder for what is wrong or open, as text")
    options = parser.parse_args(arguments)
    work = [
        (folder, name)
        for folder in options.folders
        for name in names_of(folder)
        if not options.names or name in options.names
    ]
    tally = Tally()
    with ProcessPoolExecutor(options.workers) as pool:
        asked = [
            pool.submit(attack_named, folder, name, options.each, options.seed, not options.found)
            for folder, name in work
        ]
        for (_, name), future in zip(work, asked, strict=True):
            try:
                found = future.result()
            except (LayoutproofError, ValueError) as problem:
                print(f"{name}: not attacked: {problem}", file=sys.stderr, flush=True)
                continue
            tally.outcomes += found
            print(f"{name}: {dict(Counter(o.verdict for o in found))}", file=sys.stderr, flush=True)
    print(report(tally))
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
        for number, each in enumerate([*tally.wrong, *tally.gaps]):
            (options.keep / f"{each.pair}_{number}.py").write_text(f"# {each}\n{each.text}", encoding="utf-8")
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
