"""The verdict of a cell: its claims, proved or refuted by the checker, and the fast-math assumptions that they take.

Where the checker leaves a claim open, a second search for counterexamples tries inputs of special values alone, which
random ones seldom are. What it finds is evaluated like any other counterexample.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from typing import Any

import numpy as np

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import Expr
from layoutproof.ir.interp.arguments import Array
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.wellformed import check_wellformed
from layoutproof.lowering.arith.known_facts import assumed_of_constants
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.passes.steps import about_the_program
from layoutproof.lowering.proof_cache.remembered import verdicts_of
from layoutproof.studies.cells import Cell, is_applicable
from layoutproof.studies.claims import Claim, Question, question_of
from layoutproof.studies.operators import Operator
from layoutproof.studies.repeated import ENGINE, prove_repeated
from layoutproof.verify.replay.counterexample import Counterexample, Failure, Number, Sample
from layoutproof.verify.replay.inputs import SEED, Palette, numbers_to_try, specials
from layoutproof.verify.replay.minimised import explain, minimised
from layoutproof.verify.replay.placement import NotComparable, Place, Placement
from layoutproof.verify.replay.refute import find_counterexample
from layoutproof.verify.replay.strictness import Strictness, relevant
from layoutproof.verify.replay.trial import Pair
from layoutproof.verify.replay.watching import NotWatched
from layoutproof.verify.settings import scaled
from layoutproof.verify.values.fast_math import IEEE, FastMath, FastMathSet, in_order, names_of, parse_fast_math
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status, Verdict

RUNS, SIZES, MINIMISING, LIMIT = 160, 2, 60, 400_000


def find_special(rewrite: Rewrite, where: Expr | None, fast_math: FastMathSet) -> Counterexample | None:
    """An input of special values on which only the new program faults or ends otherwise; None where none was found."""
    allowed = relevant(fast_math, rewrite.old, rewrite.new)
    try:
        pair = Pair(rewrite, Strictness.of(allowed, rewrite.old, rewrite.new), where)
        for numbers in islice(numbers_to_try(rewrite, where, ()), SIZES):
            for sample in islice(special_samples(pair.placement(numbers), numbers, allowed), scaled(RUNS)):
                outcome = pair.judge(pair.settle(sample, LIMIT), LIMIT)
                if isinstance(outcome, Failure):
                    return explain(pair, minimised(pair, outcome, MINIMISING, LIMIT), LIMIT)
    except (NotComparable, NotWatched):
        return None
    return None


def special_samples(placement: Placement, numbers: Mapping[str, Number], fast_math: FastMathSet) -> Iterator[Sample]:
    """Inputs whose arrays hold one special value each; then arrays of two, the second one in the last place."""
    finite = bool(fast_math & {FastMath.NNAN, FastMath.NINF} == {FastMath.NNAN, FastMath.NINF})
    palette = Palette(np.random.default_rng(SEED), finite, FastMath.REASSOC in fast_math)
    read = [place for place in placement.places if not place.written]
    choices = [specials(place.dtype, finite, FastMath.REASSOC in fast_math) for place in read]
    for last in (False, True):
        for values in product(*(product(choice, choice if last else choice[:1]) for choice in choices)):
            arrays: dict[str, Array] = {p.name: palette.ordinary(p) for p in placement.places}
            for place, (value, other) in zip(read, values, strict=True):
                arrays[place.name] = _array(palette, place, value, other if last else value)
            yield Sample(numbers, arrays, True)


def _array(palette: Palette, place: Place, value: Number, last: Number) -> Array:
    array = palette.constant(place, value)
    if array.size:
        array.reshape(-1)[-1] = palette.constant(place, last).reshape(-1)[-1]
    return array


NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True)
class Decision:
    """One claim that was asked: the rewrite, and the verdicts, worst first."""

    claim: Claim
    rewrite: Rewrite
    verdicts: tuple[Verdict, ...]

    @property
    def status(self) -> Status:
        """The worst of the verdicts."""
        return worst(verdict.status for verdict in self.verdicts)

    @property
    def first(self) -> Verdict:
        """The verdict that tells most: the first that is not proved, else the first that takes assumptions."""
        open_ones = [v for v in self.verdicts if v.status is self.status]
        taking = [v for v in open_ones if v.strictness or v.engine == ENGINE]
        return (taking or open_ones)[0]

    @property
    def fast_math(self) -> FastMathSet:
        """The fast-math assumptions that its proofs take."""
        return parse_words(word for verdict in self.verdicts for word in verdict.strictness)


@dataclass(frozen=True, slots=True)
class Judged:
    """The answer for one cell. `least` are the fast-math assumptions it takes, of which none can be left out: `breaks`
    has what refutes or leaves it open without each. `reason` explains what was not asked or not decided.
    """

    cell: Cell
    status: str
    question: Question | None = None
    decisions: tuple[Decision, ...] = ()
    least: FastMathSet = frozenset()
    breaks: Mapping[str, Verdict] = field(default_factory=dict)
    reason: str | None = None

    @property
    def end(self) -> PrimFunc | None:
        """The program at the end: without the guards that may go."""
        proved = [d for d in self.decisions if d.status is Status.PROVED]
        if proved:
            return proved[-1].rewrite.new
        return self.question.guarded if self.question is not None else None


def parse_words(words: Iterable[str]) -> FastMathSet:
    """Fast-math assumptions by name; none for no words."""
    given = " ".join(words)
    return parse_fast_math(given) if given else frozenset()


def judge(operator: Operator, cell: Cell) -> Judged:
    """Decide a cell. What cannot be laid out is unknown with the reason, or refuted where that was."""
    missing = is_applicable(operator, cell)
    if missing is not None:
        return Judged(cell, NOT_APPLICABLE, reason=missing)
    allowed = parse_fast_math(cell.strictness)
    try:
        question = question_of(operator, cell, allowed)
    except LayoutproofError as problem:
        status = worst(v.status for v in problem.verdicts) if isinstance(problem, IllegalTransform) else Status.PROVED
        word = status if status is not Status.PROVED else Status.UNKNOWN
        return Judged(cell, word.value, reason=problem.diagnostics[0].message)
    if not question.claims:
        return Judged(cell, NOT_APPLICABLE, question, reason="the layout causes no guard")
    decisions = decide(question, allowed)
    status = worst(decision.status for decision in decisions)
    judged = Judged(cell, status.value, question, decisions, reason=_reason_of(decisions))
    return _with_least(judged) if status is Status.PROVED else judged


def decide(question: Question, allowed: FastMathSet) -> tuple[Decision, ...]:
    """Ask each claim of the program that the proved ones before it led to."""
    func, found = question.guarded, list[Decision]()
    where = assumed_of_constants(question.logical)
    for claim in question.claims:
        # What padding holds is a matter of bits, so no assumption helps to fill it.
        usable = allowed if claim.block is not None else IEEE
        decision = _decide(func, claim, where, usable)
        if decision.status is Status.UNKNOWN:
            decision = _searched(decision, question.guarded, where, usable)
        found.append(decision)
        if decision.status is Status.PROVED:
            func = decision.rewrite.new
    return tuple(found)


def _decide(func: PrimFunc, claim: Claim, where: Expr | None, allowed: FastMathSet) -> Decision:
    rewrite = claim.propose(func)
    malformed = check_wellformed(rewrite.new)
    if malformed:
        raise LayoutproofError(malformed)
    verdicts = verdicts_of(rewrite, where, allowed, True, "study", {"claim": claim.name})
    return Decision(claim, rewrite, tuple(map(about_the_program, verdicts)))


def _searched(decision: Decision, guarded: PrimFunc, where: Expr | None, allowed: FastMathSet) -> Decision:
    """The decision, refuted where further inputs show a difference: from the program before the step, or from the
    guarded one, with which fewer values are excluded by fast-math assumptions.
    """
    rewrite = decision.rewrite
    found = find_special(rewrite, where, allowed)
    if found is None and guarded != rewrite.old:
        whole = replace(rewrite, old=guarded)
        found = find_counterexample(whole, where=where, fast_math=allowed) or find_special(whole, where, allowed)
    if found is None:
        return _repeated(decision, allowed)
    first = decision.first
    refuted = replace(
        first,
        status=Status.REFUTED,
        engine="counterexample run",
        reason=found.text(),
        counterexample=found.to_dict(),
        because=frozenset(),
    )
    return replace(decision, verdicts=tuple(refuted if v is first else v for v in decision.verdicts))


def _repeated(decision: Decision, allowed: FastMathSet) -> Decision:
    """The decision, proved where extra updates cancel by their number."""
    block = decision.claim.block
    found = prove_repeated(decision.rewrite, block, decision.verdicts, allowed) if block is not None else None
    if found is None:
        return decision
    lemma, sentence = found
    proved = [
        v
        if v.status is Status.PROVED
        else Verdict(Status.PROVED, v.claim, ENGINE, lemma.strictness, sentence, rests_on=lemma.rests_on)
        for v in decision.verdicts
    ]
    return replace(decision, verdicts=tuple(proved))


def _reason_of(decisions: Sequence[Decision]) -> str | None:
    undecided = [d for d in decisions if d.status in (Status.UNKNOWN, Status.VACUOUS)]
    return f"{undecided[0].claim.name}: {undecided[0].first.reason}" if undecided else None


def _with_least(judged: Judged) -> Judged:
    """The fast-math assumptions with none that can be left out, and what breaks without each."""
    assert judged.question is not None
    decisions = judged.decisions
    fast_math = frozenset(each for decision in decisions for each in decision.fast_math)
    breaks: dict[str, Verdict] = {}
    for each in in_order(fast_math):
        without = decide(judged.question, fast_math - {each})
        failed = next((d for d in without if d.status is not Status.PROVED), None)
        if failed is None:
            fast_math, decisions = fast_math - {each}, without
        else:
            breaks[each.value] = failed.first
    return replace(judged, decisions=decisions, least=fast_math, breaks=breaks)


def record_of(judged: Judged) -> dict[str, Any]:
    """A cell's answer as plain data; nothing in it depends on the machine or the clock."""
    refuted = [d for d in judged.decisions if d.status is Status.REFUTED]
    example = refuted[0].first.counterexample if refuted else None
    return {
        **{name: getattr(judged.cell, name) for name in Cell.__slots__},
        "verdict": judged.status,
        "licences": list(names_of(judged.least)),
        "breaks": {word: verdict.reason for word, verdict in judged.breaks.items()},
        "reason": judged.reason,
        "claims": [_claim_record(d) for d in judged.decisions],
        "guards": sum(d.claim.block is not None for d in judged.decisions),
        "guards_left": sum(d.claim.block is not None and d.status is not Status.PROVED for d in judged.decisions),
        "counterexample": dict(example) if example is not None else None,
    }


def _claim_record(decision: Decision) -> dict[str, Any]:
    first = decision.first
    return {
        "claim": decision.claim.name,
        "verdict": decision.status.value,
        "licences": list(names_of(decision.fast_math)),
        "about": first.claim.text,
        "engine": first.engine,
        "reason": first.reason,
        "rests_on": sorted({law for verdict in decision.verdicts for law in verdict.rests_on}),
    }
