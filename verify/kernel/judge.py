"""Which claims of a step are accepted: its text is read, the obligations are made from it, and each is proved by the
evidence or rejected with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from layoutproof.verify.kernel.copies import Reads
from layoutproof.verify.kernel.extras import prove_extras
from layoutproof.verify.kernel.faults import (
    accesses,
    prove_arithmetic,
    prove_bounds,
    prove_extents,
    prove_inside,
    prove_no_race,
    prove_results,
)
from layoutproof.verify.kernel.integers import Question
from layoutproof.verify.kernel.interface import (
    prove_assumption,
    prove_cells,
    prove_interface,
    prove_plain,
    prove_possible,
)
from layoutproof.verify.kernel.lanes import is_lane
from layoutproof.verify.kernel.programs import Loop, Rewrite
from layoutproof.verify.kernel.reader import read_rewrite
from layoutproof.verify.kernel.refinement import (
    Part,
    parts_of,
    prove_apart,
    prove_onto,
    prove_order,
    prove_paired,
    prove_steady_guards,
)
from layoutproof.verify.kernel.rejected import FAILURES, reason_of
from layoutproof.verify.kernel.step import Copies, Inverse, Map, Source, Step
from layoutproof.verify.kernel.unread import prove_copied, prove_covered, prove_dropped, prove_overwritten, prove_unseen


@dataclass(frozen=True, slots=True)
class Judged:
    """One claim: its kind, the line of the new program (0: none), what it says, and why it is rejected, if it is."""

    kind: str
    line: int
    text: str
    reason: str | None = None

    @property
    def is_accepted(self) -> bool:
        """Whether it is proved."""
        return self.reason is None


def judge(text: str, evidence: Evidence, allowed: frozenset[str] = frozenset()) -> tuple[Judged, ...]:
    """The claims of a step, given as text, each accepted or rejected. The new program does what the old one does, for
    every input, if all are accepted. Raises Rejected for a text that is not understood.
    """
    return judge_rewrite(read_rewrite(text), evidence, allowed)


def judge_rewrite(rewrite: Rewrite, evidence: Evidence, allowed: frozenset[str] = frozenset()) -> tuple[Judged, ...]:
    """The claims of a rewrite that was read, under the fast-math assumptions that are `allowed` or that it states."""
    return tuple(judged_in_turn(rewrite, evidence, allowed))


def judged_in_turn(rewrite: Rewrite, evidence: Evidence, allowed: frozenset[str] = frozenset()) -> Iterator[Judged]:
    """The claims of `judge_rewrite`, each judged when it is asked for."""
    allowed |= frozenset(rewrite.strictness.split()) & _ASSUMPTIONS
    step = Step(
        rewrite,
        evidence.refutation,
        evidence.inverses,
        evidence.sources,
        evidence.fills,
        evidence.backs,
        allowed,
        evidence.copies,
    )
    yield from (_judged(*claim) for claim in _claims(step))


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is given with a step; none of it is believed. `refutation` has the proof that a question has no solution, or
    raises Rejected; `inverses` says by old store where it is computed; `sources` says by new store and load what is
    known of it; `fills` and `backs` say by memory what fills its new padding, and the inverse of f; `copies` says where
    values come from that take another way through memory.
    """

    refutation: Callable[[Question], object]
    inverses: Mapping[int, Sequence[Inverse]]
    sources: Mapping[tuple[int, int], Source]
    fills: Mapping[str, Source]
    backs: Mapping[str, Map]
    copies: Copies = field(default_factory=Copies)


_ASSUMPTIONS = {"nnan", "ninf", "nsz", "reassoc"}

Claim = tuple[str, int, str, Callable[[], None]]


def _judged(kind: str, line: int, text: str, prove: Callable[[], None]) -> Judged:
    try:
        prove()
    except FAILURES as problem:
        return Judged(kind, line, text, reason_of(problem))
    return Judged(kind, line, text)


def _claims(step: Step) -> Iterator[Claim]:
    yield "forms", 0, "both programs have only forms that the kernel covers", partial(_prove_forms, step)
    for data in {**step.rewrite.cells, **step.copies.memories}:
        yield "cells", 0, f"the cells of {data} are one-to-one and inside", partial(prove_cells, step, data)
    yield "runs", 0, "the preconditions on symbols can hold", partial(prove_possible, step)
    yield "interface", 0, "parameters stay as they are, or as declared", partial(prove_interface, step)
    yield from _faults(step)
    yield from _refinement(step)


def _prove_forms(step: Step) -> None:
    for program in (step.old, step.new):
        prove_plain(program)
        prove_steady_guards(program)
    for s in step.old.stores:
        if any(map(is_lane, s.loops)):
            prove_no_race(step, step.old, s, s)


def _faults(step: Step) -> Iterator[Claim]:
    for inside in step.new.insides:
        yield (
            "within-domain",
            inside.line,
            "the block variable stays in its domain",
            partial(prove_inside, step, inside),
        )
    for buffer in step.new.buffers.values():
        yield "has-result", 0, f"the extents of {buffer.name} are computed", partial(prove_extents, step, buffer)
    stores = [s for s in step.new.statements if s.kind == "store"]
    for s in step.new.statements:
        for name, index, place, writes in accesses(s):
            words = f"{'write to' if writes else 'read of'} {name} stays inside"
            yield "within-buffer", s.line, words, partial(prove_bounds, step, place, name, index)
        yield "fits", s.line, "index arithmetic fits its type", partial(prove_arithmetic, step, s)
        yield "has-result", s.line, "index arithmetic has a result", partial(prove_results, step, s)
        if s.kind == "assume":
            yield "assumption", s.line, "the assumption was made before", partial(prove_assumption, step, s)
    for number, a in enumerate(stores):
        for b in stores[number:]:
            if _share_parallel(a.loops, b.loops):
                yield (
                    "no-race",
                    a.line,
                    "iterations in parallel are independent",
                    partial(prove_no_race, step, step.new, a, b),
                )


def _share_parallel(a: Sequence[Loop], b: Sequence[Loop]) -> bool:
    return any(x == y and x.kind in ("parallel", "vectorized") for x, y in zip(a, b, strict=False))


def _refinement(step: Step) -> Iterator[Claim]:
    parts: list[Part] = []

    def read() -> None:
        parts.extend(parts_of(step))
        prove_apart(step, parts)

    yield "witness", 0, "theta is a function", read
    for part in parts:
        words = f"it stores the value of old store {part.old.number}, to its cell"
        yield "same-value", part.new.line, words, partial(Reads(step, parts).prove_part, part)
        if step.is_beside(part.new.buffer):
            words = "what is stored beside a parameter is copied to it"
            yield "same-end", part.new.line, words, partial(prove_covered, step, parts, part)
    for new in step.new.stores:
        yield (
            "same-value",
            new.line,
            "instances that compute no old one change nothing",
            partial(prove_extras, step, parts, new, (prove_unseen, prove_copied, prove_overwritten)),
        )
    for old in step.old.stores:
        if any(part.old is old for part in parts) or old.number in step.inverses:
            words = f"old store {old.number} is computed once for each of its instances"
            yield "same-end", 0, words, partial(prove_onto, step, parts, old)
        else:
            words = f"old store {old.number} is of a temporary, and not needed"
            yield "same-end", 0, words, partial(prove_dropped, step, old)
    for a in parts:
        for b in parts:
            words = f"conflicting accesses of lines {a.new.line} and {b.new.line} keep their order"
            yield "same-end", a.new.line, words, partial(prove_order, step, a, b)
            if a.number <= b.number and any(
                buffer.depth for p in (step.old, step.new) for buffer in p.buffers.values()
            ):
                words = f"lines {a.new.line} and {b.new.line} share the cells of temporaries that they shared"
                yield "same-end", a.new.line, words, partial(prove_paired, step, a, b)
