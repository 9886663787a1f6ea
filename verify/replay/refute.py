"""The checker's verdicts, what it leaves open refuted where a run shows a difference, and the search for an input on
which a rewrite's new program does something that the old one does not. Apart from the checker, so that nothing here
can make a proof.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import Cast, Expr
from layoutproof.ir.interp import count_instances
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.visit import walk
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.flow.hints import SuspectCell
from layoutproof.verify.program.evidence import UNRECORDED, Gathered
from layoutproof.verify.replay.counterexample import Counterexample, Failure, Number, Outcome, Sample, Verdictless
from layoutproof.verify.replay.inputs import SEED, Hints, Palette, Unread, numbers_to_try, samples
from layoutproof.verify.replay.minimised import explain, minimised
from layoutproof.verify.replay.placement import NotComparable
from layoutproof.verify.replay.slices import SlicedPair
from layoutproof.verify.replay.strictness import Strictness, relevant
from layoutproof.verify.replay.trial import Pair
from layoutproof.verify.replay.watching import NotWatched
from layoutproof.verify.same_program import Checked
from layoutproof.verify.settings import scaled
from layoutproof.verify.values.fast_math import ALL, FastMath, FastMathSet
from layoutproof.verify.verdict.verdict import Status, Verdict


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of a search: iterations and cells of all runs, the runs, and runs to minimise what was found."""

    instances: int = 1_500_000
    runs: int = 250
    minimising_runs: int = 200


_FIRST_LOOK = 3  # samples for every choice of sizes, before any is looked at closely
_CLOSE_LOOKS = 6
_SHARE = 40  # sizes of which so many can be run are tried before larger ones
_CONFIRMED = 2_000  # store instances of all runs, up to which the plain evaluator runs what was found
_POISONED = 4  # of so many samples one is also tried with NaN or infinities where the old program does not look
_PATIENCE = 150  # samples that say nothing, one after the other from the first
_SLICED_RUNS, _SLICED_MINIMISING = 12, 60
_SLICED_FIRST = 3  # samples in programs that can be run in full, but not often
_FIRST_ELEMENTS = 8  # of each parameter, from which is told what more would cost
_SAMPLES_PAID_FOR = 5  # in programs that are sliced: for so many samples the budget has to do


def _at_this_scale() -> Budget:
    usual = Budget()
    return Budget(scaled(usual.instances), scaled(usual.runs), scaled(usual.minimising_runs))


def find_counterexample(
    rewrite: Rewrite,
    *,
    where: Expr | None = None,
    hints: Hints = (),
    fast_math: FastMathSet = frozenset(),
    budget: Budget | None = None,
    suspect_cells: Sequence[SuspectCell] = (),
) -> Counterexample | None:
    """An input that satisfies the old program's assumptions and on which only the new program faults, or ends with
    other values.

    `where` is what callers vouch for of symbols; `hints` are values that a solver thought of: of symbols by name, and
    of loads under names that begin with the buffer's. `suspect_cells` are cells to look at first where not all can be.
    `fast_math` leave executions out (see `strictness`). None where nothing was found: that says nothing. The same
    rewrite gives the same answer each time.
    """
    budget = _at_this_scale() if budget is None else budget
    try:
        fast_math = relevant(fast_math, rewrite.old, rewrite.new)
        pair = Pair(rewrite, Strictness.of(fast_math, rewrite.old, rewrite.new), where)
        affordable = _affordable(rewrite, where, hints, budget)
        sliced = _Slices(rewrite, where, hints, fast_math, budget, suspect_cells)
        if not affordable:
            return sliced.find(_SLICED_RUNS)
        if min(_instances(rewrite, each) for each in affordable) * pair.strictness.weight > budget.instances // _SHARE:
            found = sliced.find_first()
            if found is not None:
                return found
        failure = _find(pair, affordable, hints, budget)
        if failure is None:
            return None
        failure = minimised(pair, failure, budget.minimising_runs, _limit(budget))
        return _confirmed(pair, failure, budget)
    except (NotComparable, NotWatched, LayoutproofError):
        return None


def _affordable(rewrite: Rewrite, where: Expr | None, hints: Hints, budget: Budget) -> list[dict[str, Number]]:
    """Numbers with which both can be run, those first with which that costs little."""
    costs = [(numbers, _instances(rewrite, numbers)) for numbers in numbers_to_try(rewrite, where, hints)]
    return [
        numbers
        for low, high in ((-1, budget.instances // _SHARE), (budget.instances // _SHARE, budget.instances // 4))
        for numbers, cost in costs
        if low < cost <= high
    ]


def _palette(fast_math: FastMathSet, rewrite: Rewrite) -> Palette:
    finite, whole = bool(fast_math & {FastMath.NNAN, FastMath.NINF}), FastMath.REASSOC in fast_math
    return Palette(np.random.default_rng(SEED), finite, whole, any(map(_may_round, (rewrite.old, rewrite.new))))


def _may_round(func: PrimFunc) -> bool:
    """Whether a program converts floats to another type of floats, or integers to a smaller type."""
    conversions = ((e.dtype, e.value.dtype) for e in walk(func.body) if isinstance(e, Cast))
    return any(
        (target.is_float and source.is_float)
        or (target.is_integer and source.is_integer and target.max_int < source.max_int)
        for target, source in conversions
    )


@dataclass(frozen=True, slots=True)
class _Slices:
    """The search by slices, in programs that are too large to run in full or often."""

    rewrite: Rewrite
    where: Expr | None
    hints: Hints
    fast_math: FastMathSet
    budget: Budget
    suspect_cells: Sequence[SuspectCell]

    def find_first(self) -> Counterexample | None:
        """What a few samples show, where slices say anything."""
        try:
            return self.find(_SLICED_FIRST)
        except (NotComparable, LayoutproofError):
            return None

    def find(self, runs: int) -> Counterexample | None:
        """What so many samples show. Raises NotComparable, NotWatched, LayoutproofError."""
        pair = SlicedPair(
            self.rewrite,
            Strictness.of(self.fast_math, self.rewrite.old, self.rewrite.new),
            self.where,
            suspect_cells=self.suspect_cells,
        )
        numbers = next(numbers_to_try(self.rewrite, self.where, self.hints), None)
        if numbers is None or not pair.ready(pair.placement(numbers)):
            return None
        limit, whole = max(self.budget.instances // 2, 1), pair.chosen
        stream = samples(pair.placement(numbers), numbers, _palette(self.fast_math, self.rewrite), self.hints, few=True)
        for count, sample in enumerate(islice(stream, runs)):
            pair.chosen = whole
            settled = pair.settle(sample, limit)
            outcome = self.tried(pair, settled, limit) if count == 0 else pair.judge(settled, limit, glance=count)
            if count == 0:
                whole = pair.chosen
            if isinstance(outcome, Failure):
                failure = pair.narrowed(outcome, limit)
                failure = minimised(pair, failure, _SLICED_MINIMISING, limit, pair.telling(failure.sample))
                return explain(pair, failure, limit)
            if pair.spent >= self.budget.instances:
                return None
        return None

    def tried(self, pair: SlicedPair, sample: Sample, limit: int) -> Outcome:
        """The first sample: a few elements, then as many as can be paid for, which stay chosen."""
        whole, before = pair.chosen, pair.spent
        pair.at_most(_FIRST_ELEMENTS)
        outcome = pair.judge(sample, limit, glance=0)
        if isinstance(outcome, Failure):
            return outcome
        cost = max(pair.spent - before, 1)
        affordable = int(_FIRST_ELEMENTS * (self.budget.instances / _SAMPLES_PAID_FOR) / cost)
        if affordable <= _FIRST_ELEMENTS:
            return outcome
        pair.chosen = whole
        pair.at_most(affordable)
        return pair.judge(sample, limit, glance=1)


def _find(pair: Pair, affordable: Sequence[dict[str, Number]], hints: Hints, budget: Budget) -> Failure | None:
    palette = _palette(pair.strictness.fast_math, pair.rewrite)
    queues = [(numbers, _stream(pair, numbers, palette, hints)) for numbers in affordable]
    close = sorted(queues, key=lambda q: _closeness(q[0]))[:_CLOSE_LOOKS]
    first = (sample for _, stream in queues for sample in islice(stream, _FIRST_LOOK))
    rounds = (sample for _ in range(budget.runs) for _, stream in close for sample in islice(stream, 4))
    unread, limit = Unread(pair), _limit(budget)
    runs = useless = 0
    for sample in _both(first, rounds):
        if runs >= budget.runs or pair.spent >= budget.instances:
            return None
        runs += 1
        settled = pair.settle(sample, limit)
        outcome = pair.judge(settled, limit, glance=runs)
        useless += isinstance(outcome, Verdictless)
        if not isinstance(outcome, Failure) and runs % _POISONED == 1:
            poisoned = unread.poisoned(settled, limit)
            outcome = pair.judge(pair.settle(poisoned, limit), limit, glance=runs) if poisoned is not None else None
        if isinstance(outcome, Failure):
            return outcome
        if useless == runs >= _PATIENCE:
            return None
    return None


def _both(first: Iterator[Sample], then: Iterator[Sample]) -> Iterator[Sample]:
    yield from first
    yield from then


def _stream(pair: Pair, numbers: dict[str, Number], palette: Palette, hints: Hints) -> Iterator[Sample]:
    try:
        placement = pair.placement(numbers)
    except NotComparable:
        if not numbers:
            raise
        return  # these sizes alone may be at fault
    yield from samples(placement, numbers, palette, hints)


def _closeness(numbers: dict[str, Number]) -> float:
    """Sizes that are neither trivial nor large come first."""
    return sum(abs(float(value) - 4.0) for value in numbers.values())


def _limit(budget: Budget) -> int:
    return max(budget.instances // 4, 1)


def _instances(rewrite: Rewrite, numbers: dict[str, Number]) -> int:
    """About how large a run of both is; 0 where that cannot be told beforehand."""
    try:
        return sum(count_instances(f, numbers) for f in (rewrite.old, rewrite.new))
    except LayoutproofError:
        return 0


def _confirmed(pair: Pair, failure: Failure, budget: Budget) -> Counterexample | None:
    """The failure, once the plain evaluator has seen it too (a slow one, which is spared large runs)."""
    runs = sum(map(len, pair.fillings))
    if _instances(pair.rewrite, dict(failure.sample.numbers)) * runs <= _CONFIRMED:
        plain = Pair(pair.rewrite, Strictness(), pair.where, plain=True)
        again = plain.judge(failure.sample, _limit(budget))
        if not isinstance(again, Failure) or again.kind != failure.kind:
            return None
    return explain(pair, failure, _limit(budget))


def replays(
    rewrite: Rewrite,
    counterexample: Mapping[str, Any],
    *,
    where: Expr | None = None,
    fast_math: FastMathSet = frozenset(),
    budget: Budget | None = None,
) -> bool:
    """Whether a counterexample, as `Counterexample.to_dict` wrote it, still shows a failure of the rewrite.

    Raises LayoutproofError for a dictionary that does not hold one.
    """
    budget = _at_this_scale() if budget is None else budget
    sample = Counterexample.sample_of(rewrite, counterexample)
    try:
        strictness = Strictness.of(fast_math, rewrite.old, rewrite.new)
        pair = Pair(rewrite, strictness, where)
        if _instances(rewrite, dict(sample.numbers)) * 4 > budget.instances:
            sliced = SlicedPair(rewrite, strictness, where)
            placement = sliced.placement(sample.numbers)
            if not sliced.ready(placement):
                return False
            cells = Counterexample.cells_of(counterexample)
            if cells:
                sliced.only_at(placement, cells)
            pair = sliced
        fitting = all(sample.arrays[p.name].shape == p.array_shape for p in pair.placement(sample.numbers).places)
        return fitting and isinstance(pair.judge(sample, _limit(budget)), Failure)
    except (NotComparable, NotWatched):
        return False


REPLAY = "counterexample run"


def check_rewrite(
    rewrite: Rewrite, where: Expr | None = None, *, allowed: FastMathSet = ALL, gathered: Gathered = UNRECORDED
) -> tuple[Verdict, ...]:
    """The verdicts on a rewrite, as `verify.checker.prove_rewrite` has them; where one is open, both programs are run.

    Raises LayoutproofError as that does.
    """
    return _run(rewrite, where, prove_rewrite(rewrite, where, allowed=allowed, gathered=gathered), allowed)


def _run(rewrite: Rewrite, where: Expr | None, checked: Checked, allowed: FastMathSet) -> tuple[Verdict, ...]:
    """The verdicts, the first that is not decided refuted where a run shows a difference."""
    verdicts = checked.verdicts
    statuses = {v.status for v in verdicts}
    if Status.UNKNOWN not in statuses or Status.REFUTED in statuses:
        return verdicts
    # Under a fast-math assumption that may be used, a difference that it would allow refutes nothing.
    found = find_counterexample(
        rewrite, where=where, hints=checked.hints, fast_math=allowed, suspect_cells=checked.suspect_cells
    )
    if found is None:
        return verdicts
    position = next(k for k, v in enumerate(verdicts) if v.status is Status.UNKNOWN)
    open_one = verdicts[position]
    refuted = Verdict(
        Status.REFUTED,
        open_one.claim,
        REPLAY,
        reason=found.text(),
        counterexample=found.to_dict(),
        seconds=open_one.seconds,
    )
    return (*verdicts[:position], refuted, *verdicts[position + 1 :])
