"""The answer of a comparison in words: its claim, and the verdict that precedes those of the checker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from layoutproof.ir.diagnostic import counted
from layoutproof.ir.expr import IntImm
from layoutproof.ir.interp.written_out import regions_as_memory
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import Allocate, Block
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import nodes_of
from layoutproof.lowering.compare.check_witness import Asked, Moved, Trial, layouts_of
from layoutproof.lowering.compare.comparison import BufferLayout, Comparison, Furthest
from layoutproof.lowering.compare.padding_contracts import Choice
from layoutproof.lowering.compare.stated_layouts import Source
from layoutproof.lowering.passes.effects import data_written
from layoutproof.lowering.passes.illegal import worst_first
from layoutproof.verify.lockstep.memories import ASKED, is_asked
from layoutproof.verify.program.questions import Because, below
from layoutproof.verify.verdict.report import counterexample_text
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status, Verdict

ENGINE = "compare"
REPLAY = "counterexample run"


def claim_of(asked: Asked, layouts: Sequence[BufferLayout]) -> Claim:
    """What is asked: that callers see no difference, the layouts aside."""
    return _claim(asked.old.name, asked.after.name, layouts)


def _claim(before: str, after: str, layouts: Sequence[BufferLayout]) -> Claim:
    names = (after, before) if before != after else (f"{after} after", f"{before} before")
    said = "".join(
        f", with {_stored(layout)}" if k == 0 else f", {_stored(layout)}" for k, layout in enumerate(layouts)
    )
    text = f"{names[0]} refines {names[1]}{said}: output buffers are preserved"
    stored = (part for each in layouts for part in (each.buffer, str(each.index_map), str(each.pad_value)))
    return Claim(ClaimKind.SAME_END, text, about=("refines", after, before, *stored))


def _stored(layout: BufferLayout) -> str:
    holds = "" if layout.pad_value is None else f" and {_content(layout.pad_value)} in its padding"
    return f"{layout.buffer} stored as `{layout.index_map}`{holds}"


def _content(contract: str) -> str:
    return "anything" if contract == "undef" else contract


def proved(asked: Asked, trial: Trial) -> tuple[Verdict, ...]:
    """The verdicts of what holds, or holds of nothing."""
    layouts = layouts_of(asked, trial)
    first = worst_first(trial.verdicts)[0]
    reason = first.reason if first.status is Status.VACUOUS else _found_text(trial.rewrite, layouts)
    fast_math = tuple(sorted(trial.fast_math))
    said = Verdict(
        trial.status,
        claim_of(asked, layouts),
        ENGINE,
        fast_math,
        reason,
        seconds=sum(v.seconds for v in trial.verdicts),
    )
    return (said, *trial.verdicts)


def in_steps(verdicts: Sequence[Verdict], around: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """The verdicts of what holds by several rewrites; `around` are those on the others, which add nothing but that
    parameters do not overlap.
    """
    first, *others = verdicts
    notes = [] if first.reason is None else [first.reason]
    if ASKED.text not in notes and any(verdict.claim == ASKED for verdict in around):
        notes.append(ASKED.text)
    said = replace(first, reason="; ".join(notes) if notes else None)
    known = {verdict.claim.text for verdict in others}
    return (said, *others, *(verdict for verdict in around if verdict.claim.text not in known))


def of_the_same(before: PrimFunc, after: PrimFunc) -> Verdict:
    """The verdict on a program that is compared with itself, up to names."""
    return Verdict(Status.PROVED, _claim(before.name, after.name, ()), ENGINE)


def within_memory(answer: Comparison, before: PrimFunc, new: PrimFunc) -> Comparison:
    """The answer, nothing proved where an access of `new` may be outside of the region that a block matched for it, or
    memory that it allocates may have an extent below zero. `new` is the program after over the names of `before`.
    """
    for verdict in (*_outside_of_regions(answer, new), *_below_zero(answer, before, new)):
        why = f"{verdict.claim}: {counterexample_text(verdict)}"
        first = replace(answer.verdicts[0], status=Status.UNKNOWN, reason=why, strictness=())
        return replace(answer, verdicts=(first, *answer.verdicts[1:]))
    return answer


def _outside_of_regions(answer: Comparison, new: PrimFunc) -> Iterator[Verdict]:
    """Such accesses are errors wherever in the buffer they are, and are not seen once the region is written out."""
    from layoutproof.verify.faults.bounds import prove_access_in_bounds
    from layoutproof.verify.faults.facts import Facts

    apart, memories = regions_as_memory(new)
    facts = Facts.of(apart, answer.where, answer.before)
    for access in facts.program.accesses if memories else ():
        verdict = prove_access_in_bounds(facts, access) if access.buffer in memories else None
        if verdict is not None and verdict.status is not Status.PROVED:
            head = f"an access may be outside of its matched region, {verdict.claim.head}"
            yield replace(verdict, claim=replace(verdict.claim, head=head))


def _below_zero(answer: Comparison, before: PrimFunc, new: PrimFunc) -> Iterator[Verdict]:
    """Here such memory is empty; TVM may end with an error that the program before does not have, unless that allocates
    the same.
    """
    from layoutproof.verify.faults.facts import Facts, unknown, values_text, visible

    allocated = (a.buffer for a in nodes_of(new.body, Allocate))
    buffers = (*allocated, *(b for block in nodes_of(new.body, Block) for b in block.alloc_buffers))
    if all(isinstance(extent, IntImm) for buffer in buffers for extent in buffer.shape):
        return
    facts, old = (Facts.of(func, answer.where, answer.before) for func in (new, before))
    always = {a.extents for a in old.program.made if not (a.domain.dims or a.domain.guards or a.domain.dropped)}
    for made in facts.program.made:
        for extent in made.extents if made.extents not in always else ():
            if facts.interval(extent, made.domain).low >= 0:
                continue
            found = facts.search(made.domain, below(extent, 0))
            if not found.is_empty:
                what = f"{expr_text(extent, Style.PLAIN)}, an extent of {made.buffer.name}, is not below zero"
                about = ("extent", made.buffer.name)
                claim = Claim(ClaimKind.OTHER, what, made.spot.place_of(made.node), about=about)
                values = {} if found.point is None else visible(made.domain, found.point, facts.program)
                why = f"it may be at {values_text(values)}" if values else found.reason or "no answer"
                yield unknown(claim, found.engine, why, facts.watch())


def vacuous(asked: Asked, said: Verdict) -> tuple[Verdict, ...]:
    """The verdict if no witness is needed, because there are no valid inputs; `said` says why."""
    return (replace(said, claim=claim_of(asked, ()), engine=ENGINE),)


def _found_text(rewrite: Rewrite, layouts: Sequence[BufferLayout]) -> str | None:
    """What was not given, and the preconditions that follow from it."""
    maps = [layout.buffer for layout in layouts if not layout.layout_given]
    pads = [layout.buffer for layout in layouts if not layout.pad_given and layout.pad_value is not None]
    parts = [f"the layout of {', '.join(maps)}"] if maps else []
    parts += [f"what padding of {', '.join(pads)} holds"] if pads else []
    said = [f"found, not given: {' and '.join(parts)}"] if parts else []
    said += [ASKED.text] if is_asked(rewrite) else []
    return "; ".join(said) if said else None


def refuted(asked: Asked, trials: Sequence[Trial], instead: Trial | None = None) -> tuple[Verdict, ...]:
    """The verdicts of a difference that was seen under each of the open contracts. `instead` is proved with
    other ones.
    """
    first = trials[0]
    shown = worst_first(first.verdicts)[0]
    said = [_difference_text(shown)]
    if shown.engine == REPLAY:
        said += _interface_text(asked)
    inputs = _open_inputs(asked, first)
    if inputs:
        said.append(f"no pad value of {', '.join(inputs)} was given; a run differs {_under(trials, inputs)}")
    if instead is not None:
        said.append(_instead(instead))
    reason = "\n".join(said)
    claim = claim_of(asked, layouts_of(asked, first))
    verdict = Verdict(Status.REFUTED, claim, shown.engine, (), reason, shown.counterexample, shown.seconds)
    return (verdict, *first.verdicts)


def _difference_text(shown: Verdict) -> str:
    """The difference that was seen; a fault that no two results show, with the claim that it refutes."""
    text = str(counterexample_text(shown))
    example = shown.counterexample
    return text if example is None or "element" in example else f"{shown.claim} is refuted: {text}"


def refuted_by_all(asked: Asked, first: Trial, number: int) -> tuple[Verdict, ...]:
    """The verdicts if runs differ with all layouts that come into question."""
    shown = first.verdicts[0]
    names = ", ".join(asked.unknown)
    layouts = layouts_of(asked, first)
    these = (
        f"each of the {counted(number, 'layout', 'layouts')} of {names}" if number > 1 else f"the one layout of {names}"
    )
    reason = (
        f"a run refutes {these} that the shapes and accesses allow, and no other layout was found. "
        f"With {', '.join(f'{each.buffer} as `{each.index_map}`' for each in layouts if not each.layout_given)}: "
        f"{counterexample_text(shown)}"
    )
    claim = claim_of(asked, layouts)
    verdict = Verdict(Status.REFUTED, claim, shown.engine, (), reason, shown.counterexample, shown.seconds)
    return (verdict, *first.verdicts)


def faulty(asked: Asked, fault: Verdict, moved: Sequence[Moved]) -> tuple[Verdict, ...]:
    """The verdicts if the new program has a fault under any layouts, and the old one has none; `moved` has
    those known.
    """
    known = layouts_of(asked, Trial(asked.skeleton(moved), (), tuple(moved), {}))
    reason = (
        f"whatever the layout of {', '.join(asked.unknown)} is, {fault.claim} is refuted: {counterexample_text(fault)}"
    )
    verdict = Verdict(
        Status.REFUTED, claim_of(asked, known), fault.engine, (), reason, fault.counterexample, fault.seconds
    )
    return (verdict, fault)


def _open_inputs(asked: Asked, trial: Trial) -> list[str]:
    """The parameters with padding that the new program only reads, and whose contents are not stated."""
    written = data_written(asked.new.body)
    return [place.name for place in trial.moved if place.is_open and place.term.new.data not in written]


def _under(trials: Sequence[Trial], names: Sequence[str]) -> str:
    cases = [
        " and ".join(f"{name}'s padding {_holds(trial.contracts.get(name))}" for name in names) for trial in trials
    ]
    return f"where {', and where '.join(cases)}"


def _interface_text(asked: Asked) -> Iterator[str]:
    """Which parameters keep their layouts by default."""
    kept = [term.old.name for term in asked.terms if term.source is Source.KEPT and term.old.rank > 0]
    if kept:
        keeps = "keeps its layout: it has" if len(kept) == 1 else "keep their layouts: they have"
        yield f"{', '.join(kept)} {keeps} the same shape in both programs, and no other layout is given"


def _holds(contract: Choice) -> str:
    return "may not be touched" if contract is None else f"holds {_content(contract.text)}"


def _instead(trial: Trial) -> str:
    cases = (f"{place.name}'s padding {_holds(trial.contract(place))}" for place in trial.moved if place.has_padding)
    return f"where {' and '.join(cases)}, all is proved"


def undecided(
    asked: Asked, trial: Trial, layouts_tried: int = 0, *, exhausted: bool = False, instead: Trial | None = None
) -> tuple[Verdict, ...]:
    """The verdicts if a witness was found but not proved. `instead` is proved with other contracts."""
    layouts = layouts_of(asked, trial)
    failed = worst_first(trial.verdicts)[0]
    by_itself = failed.status is Status.REFUTED or Because.OLD_FAULT in failed.because
    alone = "the program after faults by itself, and so may the one before: " if by_itself else ""
    why = f"{alone}{failed.claim}: {counterexample_text(failed)}"
    if asked.unknown:
        number = counted(layouts_tried, "layout", "layouts")
        those = (
            f"{number} of {', '.join(asked.unknown)} that fit, which are all that were found" if exhausted else number
        )
        why = f"not proved with {those}; with the one that came closest: {why}"
    if instead is not None:
        why = f"{why}\n{_instead(instead)}"
    said = Verdict(
        Status.UNKNOWN, claim_of(asked, layouts), ENGINE, (), why, seconds=sum(v.seconds for v in trial.verdicts)
    )
    # A guessed layout or contract is all that is refuted then; and the program before may fault where this one does.
    return (said, *(_doubted(v) if v.status is Status.REFUTED else v for v in trial.verdicts))


def _doubted(verdict: Verdict) -> Verdict:
    reason = (
        "of the program after alone, with layouts and pad values that may be other ones: "
        f"{counterexample_text(verdict)}"
    )
    return replace(verdict, status=Status.UNKNOWN, reason=reason, counterexample=None)


def without_witness(
    asked: Asked, layouts: Sequence[BufferLayout], furthest: Furthest, seconds: float
) -> tuple[Verdict, ...]:
    """The verdict where no witness was found, and no run was seen to differ."""
    return (Verdict(Status.UNKNOWN, claim_of(asked, layouts), ENGINE, (), furthest.text(), seconds=seconds),)
