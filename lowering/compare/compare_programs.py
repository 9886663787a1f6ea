"""Whether two programs do the same, up to the layouts of parameters: the search proposes a witness, the checker
decides.

* proved: with the layouts and contracts of the comparison, each given, recorded in the new program, or found.
* refuted: a run differs, with layouts that were not guessed, and with every contract that was tried if none was given.
* unknown: neither; with the reason, and if no witness was found, how far the search came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.expr import Expr, Var, logical_and
from layoutproof.ir.interp.written_out import written_out
from layoutproof.ir.notations.map_text import parse_condition
from layoutproof.ir.primfunc import APART, MAY_OVERLAP, PrimFunc
from layoutproof.ir.rewrite import Rewrite, Witness
from layoutproof.ir.stmt import Allocate, Block, For, MatchBuffer
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import free_variables, holds_any, nodes_of
from layoutproof.ir.wellformed import require_wellformed
from layoutproof.lowering import codes
from layoutproof.lowering.arith.known_facts import assumed_of_constants, constants_of
from layoutproof.lowering.compare import answers, kernels
from layoutproof.lowering.compare.check_witness import (
    MORE_FOR_FEWER_FAST_MATH,
    Asked,
    Moved,
    Trial,
    checked,
    fault_alone,
    joined,
    layouts_of,
    of_nothing,
    refuted,
    refuted_by_all,
    tried,
    with_other_contracts,
)
from layoutproof.lowering.compare.comparison import PRIMITIVE, Comparison, Found, Furthest, NoWitness, Question
from layoutproof.lowering.compare.rolled import are_few, rolled
from layoutproof.lowering.compare.separated import separated
from layoutproof.lowering.compare.shared_interface import aligned, check_contracts, paired
from layoutproof.lowering.compare.stated_layouts import MapLike, boxes_of, read_layouts, terms_of
from layoutproof.lowering.compare.witness_search import in_order, unmatched
from layoutproof.lowering.passes.illegal import limited_stack
from layoutproof.lowering.proof_cache.remembered import verdicts_of
from layoutproof.lowering.runtime.array_layouts import check_records
from layoutproof.verify.faults.facts import STRUCTURE
from layoutproof.verify.faults.valid_sizes import valid_sizes
from layoutproof.verify.lockstep.identity import CLAIM, is_same_program
from layoutproof.verify.program.questions import Because, at_least
from layoutproof.verify.settings import scaled, settings, within
from layoutproof.verify.values.fast_math import ALL, FastMathSet
from layoutproof.verify.verdict.verdict import Status, Verdict

MOST_LAYOUTS = 24
_LESS = 10  # the part of a budget that programs may cost which are walked through side by side


def compare(
    before: PrimFunc,
    after: PrimFunc,
    *,
    layouts: Mapping[str, MapLike] | None = None,
    pads: Mapping[str, Any] | None = None,
    match: Mapping[str, str] | None = None,
    where: Expr | str | None = None,
) -> Comparison:
    """Whether `after` does what `before` does, up to the layouts of parameters.

    `layouts` says how parameters of `before`, by name, are stored in `after`: an `IndexMap`, a function of the indices,
    text, or two layout strings (`"NHWC->NCHW4c"`). A parameter of one shape in both keeps its layout by default. If
    the shapes differ, and `after` has no layout record, the layout is searched. `pads` are the contracts of padding, as
    `Schedule.transform_layout` takes them; others are searched. Parameters are paired by position, or by `match`, name
    in `after` to name in `before`. `where` is a condition on symbols that callers guarantee.

    Raises LayoutproofError for programs that are not well-formed or whose parameters do not correspond, for a layout
    that is not injective or does not fit, and for unknown names.
    """
    with limited_stack(before):
        return _compared(before, after, _Stated.of(layouts, pads, match, where), settings().usable(ALL))


def compare_bit_for_bit(
    before: PrimFunc,
    after: PrimFunc,
    *,
    layouts: Mapping[str, MapLike] | None = None,
    pads: Mapping[str, Any] | None = None,
) -> Comparison:
    """As `compare`, without fast-math assumptions, whatever is allowed elsewhere."""
    with limited_stack(before):
        return _compared(before, after, _Stated.of(layouts, pads, None, None), frozenset())


@dataclass(frozen=True, slots=True)
class _Stated:
    """What a caller says of two programs, as `compare` takes it."""

    layouts: Mapping[str, MapLike]
    pads: Mapping[str, Any]
    match: Mapping[str, str]
    where: Expr | str | None

    @staticmethod
    def of(
        layouts: Mapping[str, MapLike] | None,
        pads: Mapping[str, Any] | None,
        match: Mapping[str, str] | None,
        where: Expr | str | None,
    ) -> _Stated:
        for name, given in (("layouts", layouts), ("pads", pads), ("match", match)):
            if not (given is None or isinstance(given, Mapping)):
                raise error(
                    codes.ARGUMENT_TYPE,
                    f"compare, argument {name!r} is {type(given).__name__}, a dictionary by names is expected",
                )
        return _Stated(
            {} if layouts is None else layouts, {} if pads is None else pads, {} if match is None else match, where
        )

    @property
    def is_empty(self) -> bool:
        return self.layouts == self.pads == self.match == {}


def _compared(before: PrimFunc, after: PrimFunc, stated: _Stated, allowed: FastMathSet) -> Comparison:
    start = perf_counter()
    answer = _the_same(before, after, stated.where, allowed) if stated.is_empty else None
    if answer is None:
        question = kernels.Question.of(before, after, allowed, plain=stated.is_empty)
        _check_arguments(question.before, question.after)
        given = written_out(question.before), written_out(question.after)
        # A let of one store that was in the way of others is one now.
        looped = written_out(rolled(given[0])), written_out(rolled(given[1]))
        answer = replace(_answer_or_valid_sizes(_asked(*looped, stated, allowed)), rolled=looped != given)
        if looped != given and answer.status is Status.UNKNOWN and are_few(given):
            instead = _answer_or_valid_sizes(_asked(*given, stated, allowed))
            answer = answer if instead.status is Status.UNKNOWN else instead
        answer = _within_memory(question, stated, question.answered(answer))
    return replace(answer, match=dict(stated.match), seconds=perf_counter() - start)


def _within_memory(question: kernels.Question, stated: _Stated, answer: Comparison) -> Comparison:
    """The answer, nothing proved with memory of the program after that may be none."""
    before, after = question.before, question.after
    if answer.status is not Status.PROVED or not holds_any(after.body, MatchBuffer, Allocate, Block):
        return answer
    new = aligned(before, after, stated.match, boxes_of(before, read_layouts(before, stated.layouts), answer.where))
    return answers.within_memory(answer, before, new)


def _the_same(before: object, after: object, where: Expr | str | None, allowed: FastMathSet) -> Comparison | None:
    """The comparison of a program with itself, up to names, whatever it contains; None if the two differ."""
    if not (isinstance(before, PrimFunc) and isinstance(after, PrimFunc) and is_same_program(before, after)):
        return None
    # Errors in them are reported all the same.
    check_records(before)
    check_contracts(before)
    # `after` over the names of `before` is `before`.
    rewrite = Rewrite(before, before, Witness(instances=in_order(before, before) or ()))
    known = joined(_condition(before, where), assumed_of_constants(before))
    said = answers.of_the_same(before, after), Verdict(Status.PROVED, CLAIM, STRUCTURE)
    return Comparison(before, after, said, (), rewrite, None, known, allowed)


def _check_arguments(before: PrimFunc, after: PrimFunc) -> None:
    for name, func in (("before", before), ("after", after)):
        if not isinstance(func, PrimFunc):
            message = f"compare, argument {name!r} is {type(func).__name__}, a PrimFunc is expected"
            raise error(
                codes.ARGUMENT_TYPE, message, help="layoutproof.load reads one from a file, layoutproof.loads from text"
            )
        check_records(require_wellformed(func))
        check_contracts(func)


def _asked(before: PrimFunc, after: PrimFunc, stated: _Stated, allowed: FastMathSet) -> Asked:
    # The old program's assumptions about sizes hold of every call, also if the new one does not have them.
    assumed = joined(_condition(before, stated.where), assumed_of_constants(before))
    maps = read_layouts(before, stated.layouts)
    new = require_wellformed(aligned(before, after, stated.match, boxes_of(before, maps, assumed)))
    terms = terms_of(before, new, maps, stated.pads, assumed)
    names = {a.name: b.name for a, b in paired(before, after, stated.match)}
    return Asked(before, after, new, terms, names, assumed, allowed)


def _condition(before: PrimFunc, where: object) -> Expr | None:
    known = constants_of(before)
    if isinstance(where, str):
        return parse_condition(where, known, "<where>")
    if where is None or (isinstance(where, Expr) and where.dtype.is_bool and set(free_variables(where)) <= set(known)):
        return where
    other = [v.name for v in free_variables(where) if v not in known] if isinstance(where, Expr) else []
    what = f"over {', '.join(other)}" if other else type(where).__name__
    names = f" over {', '.join(v.name for v in known)}" if known else ""
    raise error(
        codes.ARGUMENT_TYPE, f"compare, argument 'where' is {what}, a condition such as 'n >= 1'{names} is expected"
    )


def _answer(asked: Asked) -> Comparison:
    """The comparison without its time. Parameters that do not overlap are a precondition if changing their layout takes
    that, or if nothing is proved without; never of a function that says that they may.
    """
    nothing = of_nothing(asked)
    if nothing is not None:
        return Comparison(
            asked.old, asked.after, answers.vacuous(asked, nothing), where=asked.where, allowed=asked.allowed
        )
    if asked.may_overlap and not asked.unknown:
        moved = asked.moved()
        trial = _with_a_witness(asked, moved)
        if isinstance(trial, Trial) and trial.holds:
            return _comparison(asked, answers.proved(asked, trial), trial)
    asked = asked.apart() if asked.may_overlap and MAY_OVERLAP not in asked.old.attrs else asked
    return _with_layouts_found(asked) if asked.unknown else _with_known_layouts(asked)


def _answer_or_valid_sizes(asked: Asked) -> Comparison:
    answer = _answer(asked)
    for instead in (_with_valid_sizes(asked, answer), _with_separate_sums(asked, answer), _but_empty(asked, answer)):
        if instead is not None:
            return instead
    return answer


def _with_separate_sums(asked: Asked, answer: Comparison) -> Comparison | None:
    """What is proved, by up to three rewrites in a row, if sums that other stores use are updates of their own. None if
    nothing is, or if both programs have as many such stores.
    """
    if answer.status is not Status.UNKNOWN:
        return None
    parts = separated(asked.old), separated(asked.new)
    if len({0 if each is None else each.count for each in parts}) == 1:
        return None
    old, new = (func if each is None else each.func for each, func in zip(parts, (asked.old, asked.new), strict=True))
    if asked.may_overlap and MAY_OVERLAP not in asked.old.attrs:
        old, new = (replace(func, attrs=func.attrs.with_value(APART, True)) for func in (old, new))
    found = _answer(replace(asked, old=old, new=new))
    if found.status is not Status.PROVED or found.rewrite is None:
        return None
    pairs = in_order(asked.old, old) if parts[0] is None else parts[0].there
    if pairs is None:
        return None
    around = (
        None if old is asked.old else Rewrite(asked.old, old, Witness(pairs)),
        None if parts[1] is None else parts[1].last_step(found.rewrite.new, asked.new),
    )
    said = [
        verdict
        for rewrite in around
        if rewrite is not None
        for verdict in verdicts_of(rewrite, asked.where, frozenset(), False, PRIMITIVE, {})
    ]
    if any(verdict.status is not Status.PROVED for verdict in said):
        return None
    return replace(found, before=asked.old, around=around, verdicts=answers.in_steps(found.verdicts, said))


def _but_empty(asked: Asked, answer: Comparison) -> Comparison | None:
    """The open answer of programs that differ where sizes are 0, and are proved for all others: callers seldom have
    such sizes, and say so by `where`. None where that is not so.
    """
    first, found, empty = answer.verdicts[0], answer, list[Var]()
    # With one size excluded the programs may still differ where another one is 0.
    while found.status is not Status.PROVED:
        more = [v for v in _empty_sizes(asked, found) if v not in empty]
        if not more:
            return None
        empty += more
        found = _answer(replace(asked, where=joined(asked.where, _at_least_one(empty))))
    if not empty:
        return None
    text = expr_text(_at_least_one(empty), Style.PLAIN)
    reason = f"{first.reason}\nwhere {text} no difference is known: ask with that condition (where)"
    said = Verdict(Status.UNKNOWN, found.verdicts[0].claim, first.engine, (), reason, seconds=first.seconds)
    return replace(found, verdicts=(said, *found.verdicts[1:]), where=asked.where)


def _at_least_one(sizes: Sequence[Var]) -> Expr:
    return logical_and(*(at_least(v, 1) for v in sizes))


def _empty_sizes(asked: Asked, answer: Comparison) -> list[Var]:
    """The sizes that are 0 where the programs differ: a parameter that no extent has is a number like any other."""
    first = answer.verdicts[0]
    if first.status is not Status.REFUTED or first.counterexample is None:
        return []
    sizes = first.counterexample.get("symbols", {})
    shapes = {v for buffer in asked.old.buffers for extent in buffer.shape for v in free_variables(extent)}
    loops = {v for loop in nodes_of(asked.old.body, For) for v in free_variables(loop.extent)}
    return [v for v in constants_of(asked.old) if sizes.get(v.name) == 0 and v in shapes | loops]


def _with_valid_sizes(asked: Asked, answer: Comparison) -> Comparison | None:
    """What is proved of the sizes with which the program before has no access out of bounds, where it may have one;
    None if nothing is, or if that was not the failure. Other runs are none that have to be preserved.
    """
    if not any(v.status is Status.UNKNOWN and Because.OLD_FAULT in v.because for v in answer.verdicts):
        return None
    condition = valid_sizes(asked.old)
    if condition is None:
        return None
    found = _answer(replace(asked, where=joined(asked.where, condition)))
    if found.status is not Status.PROVED:
        return None
    said = f"precondition: {expr_text(condition, Style.PLAIN)}; else the program before has an access out of bounds"
    first = found.verdicts[0]
    reason = said if first.reason is None else f"{first.reason}; {said}"
    return replace(found, verdicts=(replace(first, reason=reason), *found.verdicts[1:]))


def _with_known_layouts(asked: Asked) -> Comparison:
    moved = asked.moved()
    watch = perf_counter()
    trial = _with_a_witness(asked, moved)
    if isinstance(trial, Furthest):
        return _without_witness(asked, moved, trial, perf_counter() - watch)
    if trial.holds:
        return _comparison(asked, answers.proved(asked, trial), trial)
    found = refuted(asked, moved, trial.rewrite.witness.instances)
    instead = with_other_contracts(asked, trial)
    if found:
        return _comparison(asked, answers.refuted(asked, found, instead), found[0])
    return _comparison(asked, answers.undecided(asked, trial, instead=instead), trial)


def _with_a_witness(asked: Asked, moved: Sequence[Moved]) -> Trial | Furthest:
    """The answer with the witness that is found, layouts being known; how far the search came if there is none."""
    from layoutproof.lowering.compare.witness_search import find_witness, is_better_side_by_side

    early = not moved and is_better_side_by_side(asked.new, asked.old)
    trial = _side_by_side(asked) if early else None
    if trial is not None:
        return trial
    try:
        return tried(asked, moved, find_witness(_question(asked, moved)).instances)
    except NoWitness as problem:
        # Programs of one form may be proved side by side, also without a relation.
        trial = None if moved or early else _side_by_side(asked)
        return problem.furthest if trial is None else trial


def _side_by_side(asked: Asked) -> Trial | None:
    """What is proved of stores paired by number; None if the programs do not have that form, or nothing is."""
    pairs = in_order(asked.old, asked.new)
    held = settings()
    with within(replace(held, budget_scale=held.budget_scale / _LESS)):
        trial = None if pairs is None else tried(asked, (), pairs)
    return trial if trial is not None and trial.holds else None


def _question(asked: Asked, moved: Sequence[Moved]) -> Question:
    skeleton = asked.skeleton(moved)
    return Question(asked.old, skeleton.new, asked.where, skeleton.witness.cells, asked.unknown)


def _without_witness(asked: Asked, moved: Sequence[Moved], furthest: Furthest, seconds: float) -> Comparison:
    """The verdict from runs if no witness was found; unknown layouts leave it open, except for faults."""
    known = checked(asked, moved, {}, (), search=False)
    found = [] if asked.unknown else refuted(asked, moved, unmatched(asked.new))
    fault = fault_alone(asked, known) if asked.unknown else None
    if found:
        verdicts, known = answers.refuted(asked, found), found[0]
    elif fault is not None:
        verdicts = answers.faulty(asked, fault, moved)
    else:
        verdicts = answers.without_witness(asked, layouts_of(asked, known), furthest, seconds)
    return replace(_comparison(asked, verdicts, known), rewrite=None, furthest=furthest)


def _with_layouts_found(asked: Asked) -> Comparison:
    """The comparison if some layouts are searched: the one with which most is proved."""
    from layoutproof.lowering.compare.layout_search import find_witnesses, possible_layouts

    given = asked.moved()
    watch = perf_counter()
    best: Trial | None = None
    number, last = 0, scaled(MOST_LAYOUTS)
    furthest = Furthest(f"no layout of {', '.join(asked.unknown)} was found")
    try:
        for found in find_witnesses(_question(asked, given)):
            number += 1
            trial = _with_layouts(asked, found)
            if trial is not None and (best is None or trial.rank < best.rank):
                best = trial
            if best is not None and best.holds:
                # Another layout may do with fewer fast-math assumptions.
                last = number if not best.fast_math else min(last, number + MORE_FOR_FEWER_FAST_MATH)
            if number >= last:
                break
    except NoWitness as problem:
        furthest = problem.furthest
    if best is not None and best.holds:
        return _comparison(asked, answers.proved(asked, best), best)
    if best is not None:
        answer = _undecided(asked, best, number, given, exhausted=number < last)
    else:
        answer = _without_witness(asked, given, furthest, perf_counter() - watch)
    if answer.status is Status.REFUTED:
        return answer
    refutation = refuted_by_all(asked, possible_layouts(_question(asked, given)))
    if refutation is not None:
        return replace(_comparison(asked, answers.refuted_by_all(asked, *refutation), refutation[0]), rewrite=None)
    return answer


def _undecided(asked: Asked, best: Trial, number: int, given: tuple[Moved, ...], *, exhausted: bool) -> Comparison:
    """The answer if nothing was proved with the layouts that were found."""
    fault = fault_alone(asked, best)
    if fault is not None:
        return _comparison(asked, answers.faulty(asked, fault, given), Trial(best.rewrite, best.verdicts, given, {}))
    return _comparison(asked, answers.undecided(asked, best, number, exhausted=exhausted), best)


def _with_layouts(asked: Asked, found: Found) -> Trial | None:
    """The comparison for one choice of layouts; None if a shape does not contain an image."""
    try:
        moved = asked.moved(found.cells)
    except LayoutproofError:
        return None
    return tried(asked, moved, found.instances)


def _comparison(asked: Asked, verdicts: tuple[Verdict, ...], trial: Trial) -> Comparison:
    return Comparison(
        asked.old, asked.after, verdicts, layouts_of(asked, trial), trial.rewrite, None, asked.where, asked.allowed
    )
