"""Which claims of a step are accepted: its text is read, the obligations are made from it, and each is proved by the
evidence or rejected with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from layoutproof.verify.kernel import copies, faults, interface, refinement, unrolled
from layoutproof.verify.kernel.extras import prove_extras
from layoutproof.verify.kernel.lanes import is_lane
from layoutproof.verify.kernel.programs import Rewrite
from layoutproof.verify.kernel.reader import ASSUMPTIONS
from layoutproof.verify.kernel.refinement import Part
from layoutproof.verify.kernel.rejected import FAILURES, reason_of
from layoutproof.verify.kernel.step import Evidence, Step

Claims = Iterator[tuple[Any, ...]]  # kind, line, words; a rule, and what it is asked of, beside the step


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


def stated(rewrite: Rewrite) -> frozenset[str]:
    """The fast-math assumptions that a rewrite states."""
    return frozenset(rewrite.strictness.split()) & ASSUMPTIONS


def judged_in_turn(rewrite: Rewrite, evidence: Evidence, allowed: frozenset[str] | None = None) -> Iterator[Judged]:
    """The claims of a rewrite, each accepted or rejected when it is asked for, under the fast-math assumptions that are
    `allowed`, by default those that it states. The new program does what the old one does, for every input, if all are
    accepted.
    """
    step = Step(rewrite, evidence, stated(rewrite) if allowed is None else allowed)
    for kind, line, text, prove, *asked in _claims(step):
        reason = None
        try:
            prove(step, *asked)
        except FAILURES as problem:
            reason = reason_of(problem)
        yield Judged(kind, line, text, reason)


def _claims(step: Step) -> Claims:
    if unrolled.is_one(step):
        yield "same-value", 0, "both programs are one once loops are written out", unrolled.prove_one
        yield "runs", 0, "the preconditions on symbols can hold", interface.prove_possible
        yield from _insides(step)
        return
    yield "forms", 0, "both programs have only forms that the kernel covers", _prove_forms
    for data in {**step.rewrite.cells, **step.copies.memories}:
        yield "cells", 0, f"the cells of {data} are one-to-one and inside", interface.prove_cells, data
    yield "runs", 0, "the preconditions on symbols can hold", interface.prove_possible
    yield "interface", 0, "parameters stay as they are, or as declared", interface.prove_interface
    yield from _faults(step)
    parts: list[Part] = []

    def read(step: Step) -> None:
        parts.extend(refinement.parts_of(step))
        refinement.prove_apart(step, parts)

    yield "witness", 0, "theta is a function", read
    yield from _values(step, parts)
    yield from _ends(step, parts)


def _prove_forms(step: Step) -> None:
    for program in (step.old, step.new):
        interface.prove_plain(program)
    for s in step.old.statements:
        faults.prove_exact(step, s)
    for s in step.old.stores:
        if any(map(is_lane, s.loops)):
            faults.prove_no_race(step, step.old, s, s)


def _insides(step: Step) -> Claims:
    for inside in step.new.insides:
        yield "within-domain", inside.line, "the block variable stays in its domain", faults.prove_inside, inside


def _faults(step: Step) -> Claims:
    yield from _insides(step)
    for buffer in step.new.buffers.values():
        yield "has-result", 0, f"the extents of {buffer.name} are computed", faults.prove_extents, buffer
    for s in step.new.statements:
        for place, access, writes in faults.accesses(s):
            words = f"{'write to' if writes else 'read of'} {access[0]} stays inside"
            yield "within-buffer", s.line, words, faults.prove_bounds, place, access
        yield "fits", s.line, "index arithmetic fits its type", faults.prove_arithmetic, s
        yield "has-result", s.line, "index arithmetic has a result", faults.prove_results, s
        if s.kind == "assume":
            yield "assumption", s.line, "the assumption was made before", interface.prove_assumption, s
    for a in step.new.stores:
        for b in step.new.stores[a.number :]:
            if any(x == y and x.kind in ("parallel", "vectorized") for x, y in zip(a.loops, b.loops, strict=False)):
                words = "iterations in parallel are independent"
                yield "no-race", a.line, words, faults.prove_no_race, step.new, a, b


def _values(step: Step, parts: list[Part]) -> Claims:
    for part in parts:
        words = f"it stores the value of old store {part.old.number}, to its cell"
        yield "same-value", part.new.line, words, copies.prove_part, parts, part
        if step.is_beside(part.new.buffer):
            words = "what is stored beside a parameter is copied to it"
            yield "same-end", part.new.line, words, copies.prove_covered, parts, part
    rules = copies.prove_unseen, copies.prove_copied, copies.prove_overwritten
    words = "instances that compute no old one change nothing"
    for new in step.new.stores:
        yield "same-value", new.line, words, prove_extras, parts, new, rules


def _ends(step: Step, parts: list[Part]) -> Claims:
    for old in step.old.stores:
        if any(part.old is old for part in parts) or old.number in step.given.inverses:
            words = f"old store {old.number} is computed once for each of its instances"
            yield "same-end", 0, words, refinement.prove_onto, parts, old
        else:
            words = f"old store {old.number} is of a temporary, and not needed"
            yield "same-end", 0, words, copies.prove_dropped, old
    has_fresh = any(buffer.loops for program in (step.old, step.new) for buffer in program.buffers.values())
    for a in parts:
        for b in parts:
            words = f"conflicting accesses of lines {a.new.line} and {b.new.line} keep their order"
            yield "same-end", a.new.line, words, refinement.prove_order, a, b
            if has_fresh and a.number <= b.number:
                words = f"lines {a.new.line} and {b.new.line} share the cells of temporaries that they shared"
                yield "same-end", a.new.line, words, refinement.prove_paired, a, b
