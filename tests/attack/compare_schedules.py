"""Random schedules with the witness thrown away: how many are proved again from the first program and the last one
alone.

    python -m tests.attack.compare_schedules --schedules 100 --small --workers 2            layouts from the records
    python -m tests.attack.compare_schedules --schedules 100 --small --bare --workers 2     records thrown away too

Every step of a schedule was proved, so that nothing may be refuted, except where a layout is not known: of a parameter
that keeps its shape and not its cells nobody can know without a record, and refuted is the right answer.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from layoutproof.ir.layout_record import layout_records
from layoutproof.ir.primfunc import LAYOUT, IRModule, PrimFunc
from layoutproof.ir.script.printer import print_module
from layoutproof.ir.stmt import Attributes
from layoutproof.lowering.compare.compare_programs import compare
from layoutproof.lowering.compare.comparison import Comparison
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.verdict.verdict import Status
from tests.attack.compare_judge import Laid, case_of, difference
from tests.lowering.compare.pairs import told
from tests.lowering.small_operators import NAMES, small
from tests.lowering.traces.traces import random_schedule


@dataclass(frozen=True)
class Again:
    """What was said of a schedule's two ends."""

    seed: int
    operator: str
    steps: tuple[str, ...]
    status: str
    moved_in_place: bool
    strictness: tuple[str, ...]
    why: str
    seconds: float
    text: str
    difference: str | None

    @property
    def is_proved(self) -> bool:
        """Whether it was proved again, or there is nothing to prove."""
        return self.status in (Status.PROVED.value, Status.VACUOUS.value)

    @property
    def wrong(self) -> bool:
        """Whether nobody may say that: refuted, where layouts are known, or proved, where a run tells the programs
        apart.
        """
        return self.difference is not None or (self.status == Status.REFUTED.value and not self.moved_in_place)

    def __str__(self) -> str:
        said = self.status if self.difference is None else f"{self.status}, and {self.difference}"
        return f"seed {self.seed}, {self.operator}, {said} ({self.seconds:.1f} s): {' '.join(self.steps)} | {self.why}"


def bare(func: PrimFunc) -> PrimFunc:
    """A program that says nothing of how its parameters lie."""
    return replace(func, attrs=Attributes({key: value for key, value in func.attrs.items() if key != LAYOUT}))


def moved_in_place(schedule: Schedule) -> bool:
    """Whether some parameter has its shape still, and another layout."""
    records, old = layout_records(schedule.func), layout_records(schedule.original)
    names = zip(schedule.original.buffers, schedule.func.buffers, strict=True)
    return any(b.shape == a.shape and records.get(a.data.name) != old.get(b.data.name) for b, a in names)


def again(seed: int, longest: int, is_small: bool, is_bare: bool) -> Again:
    """A random schedule, and whether its last program is proved to do what its first does."""
    program = small(Random(seed).choice(NAMES)) if is_small else None
    tried = random_schedule(seed, longest=longest, program=program)
    schedule = tried.schedule
    after = bare(schedule.func) if is_bare else schedule.func
    start = time.perf_counter()
    found = compare(schedule.original, after)
    seconds = time.perf_counter() - start
    steps = tuple(step.transform.primitive for step in schedule.steps)
    text = print_module(IRModule((replace(schedule.original, name="before"), replace(after, name="after"))))
    in_place = is_bare and moved_in_place(schedule)
    why = "" if found.status is Status.PROVED else " ".join(told(found).split())[:600]
    differs = judged(schedule.original, after, found) if is_small and found.status is Status.PROVED else None
    return Again(
        seed, schedule.original.name, steps, found.status.value, in_place, found.strictness, why, seconds, text, differs
    )


def judged(before: PrimFunc, after: PrimFunc, found: Comparison) -> str | None:
    """What tells the programs apart after all, with the layouts that a proof holds with. Of layouts of several steps
    the judge knows nothing: their paddings may have contracts of several kinds.
    """
    if any(len(record.steps) > 1 for record in layout_records(after).values()):
        return None
    laid = {each.buffer: Laid(each.index_map, each.pad_value) for each in found.layouts}
    return difference(case_of(before, after, {}, laid), Random(1), trials=4, fast_math=frozenset(found.strictness))


def share(found: Sequence[Again]) -> float:
    """How many are proved, of those that can be: one for none."""
    possible = [each for each in found if not each.moved_in_place or each.is_proved]
    return sum(each.is_proved for each in possible) / len(possible) if possible else 1.0


def report(found: Sequence[Again]) -> str:
    """The figures, and every schedule that is not proved again."""
    counts = Counter(f"{each.status}{', moved in place' if each.moved_in_place else ''}" for each in found)
    seconds = sorted(each.seconds for each in found) or [0.0]
    lines = [
        (
            f"{len(found)} schedules of {sum(len(each.steps) for each in found)} steps, proved again: "
            f"{100 * share(found):.1f} %"
        ),
        f"a comparison takes {seconds[len(seconds) // 2]:.2f} s (median), {seconds[len(seconds) * 9 // 10]:.2f} s (90 "
        "%), "
        f"{seconds[-1]:.1f} s at most",
        *(f"  {status:<28} {number}" for status, number in sorted(counts.items())),
    ]
    by_length = Counter(len(each.steps) for each in found)
    unproved = Counter(len(each.steps) for each in found if not each.is_proved)
    lines += [
        f"  {length:>3} steps: {number - unproved[length]} of {number}" for length, number in sorted(by_length.items())
    ]
    lines += [f"{'WRONG' if each.wrong else 'open'}: {each}" for each in found if each.wrong or not each.is_proved]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign; 1 where anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--longest", type=int, default=8, help="steps of a schedule, at most")
    parser.add_argument("--small", action="store_true", help="operators of small extents")
    parser.add_argument("--bare", action="store_true", help="layout records thrown away too")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="a folder for what is not proved, as text")
    options = parser.parse_args(arguments)
    seeds = range(options.first, options.first + options.schedules)
    with ProcessPoolExecutor(options.workers) as pool:
        asked = [pool.submit(again, seed, options.longest, options.small, options.bare) for seed in seeds]
        found = [future.result() for future in asked]
    print(report(found))
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
        for each in found:
            if each.wrong or not each.is_proved:
                (options.keep / f"schedule_{each.seed}.py").write_text(f"# {each}\n{each.text}", encoding="utf-8")
    return 1 if any(each.wrong for each in found) else 0


if __name__ == "__main__":
    sys.exit(main())
