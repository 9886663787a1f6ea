"""One step of a schedule: a pass proposes a rewrite, and `layoutproof.verify` decides whether it is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError, Span
from layoutproof.ir.expr import Expr
from layoutproof.ir.layout_record import layout_records
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.shown import Shown
from layoutproof.ir.threads.sequential import NoSequence, Sequential
from layoutproof.ir.wellformed import check_wellformed
from layoutproof.lowering import codes
from layoutproof.lowering.passes.as_loops import (
    as_loops,
    check_apart,
    check_begun,
    check_domains,
    check_order,
    has_kernel,
    no_witness,
    not_understood,
    own_forms,
    try_in_forms,
)
from layoutproof.lowering.passes.base import Pass
from layoutproof.lowering.passes.find import all_buffers
from layoutproof.lowering.passes.illegal import IllegalTransform, hint_of, refusing, worst_first
from layoutproof.lowering.passes.in_part import try_in_part
from layoutproof.lowering.proof_cache.remembered import verdicts_of
from layoutproof.verify.program.questions import Because
from layoutproof.verify.step_record import StepRecord
from layoutproof.verify.values.fast_math import ALL, FastMathSet
from layoutproof.verify.verdict import codes as claims
from layoutproof.verify.verdict.report import refusal_text, worst
from layoutproof.verify.verdict.verdict import GOOD, Claim, Status, Verdict

GOOD_OR_EMPTY: frozenset[Status] = frozenset({Status.PROVED, Status.VACUOUS})


@dataclass(frozen=True, slots=True)
class ProofOptions:
    """How a step is proved.

    `where` is what the function assumed of its constants, also after the assumption was removed. A step is kept if each
    verdict has a status in `accepted`; `allowed` are the fast-math assumptions that proofs may use. Without `search` no
    counterexample is looked for where a proof fails. If `fixed`, parameters keep their layouts.
    """

    where: Expr | None = None
    accepted: frozenset[Status] = GOOD
    allowed: FastMathSet = ALL
    search: bool = True
    fixed: bool = False


DEFAULTS = ProofOptions()


def check_step(transform: Pass, rewrite: Rewrite, options: ProofOptions = DEFAULTS) -> tuple[Verdict, ...]:
    """The verdicts under which a rewrite is kept. Raises IllegalTransform with those that are not accepted."""
    malformed = check_wellformed(rewrite.new)
    if malformed:
        raise IllegalTransform(malformed)
    return _check_meaning(transform, rewrite, options)


def _check_meaning(transform: Pass, rewrite: Rewrite, options: ProofOptions) -> tuple[Verdict, ...]:
    """As `check_step`, of a well-formed program."""
    try:
        verdicts = tuple(_verdicts(transform, rewrite, options))
    except LayoutproofError as problem:
        raise IllegalTransform(problem.diagnostics) from problem
    refused = worst_first(about_the_program(v) for v in verdicts if v.status not in options.accepted)
    if refused:
        raise IllegalTransform(list(_diagnostics(transform, rewrite, refused)), refused)
    return verdicts


def _verdicts(transform: Pass, rewrite: Rewrite, options: ProofOptions) -> Iterator[Verdict]:
    """The checker's verdicts; of kernels those on their forms as parallel loops, and on what these leave out."""
    kept = options.where, options.allowed, options.search, transform.primitive, transform.arguments()
    if not has_kernel(rewrite):
        yield from verdicts_of(rewrite, *kept)
        return
    before, after = own_forms(rewrite.old, rewrite.new)
    for form in (after, before):
        if isinstance(form, NoSequence):
            yield not_understood(form)
            return
    assert isinstance(before, Sequential)
    assert isinstance(after, Sequential)
    formed = try_in_forms(rewrite, before, after)
    if formed is None:
        yield no_witness()
        return
    yield from verdicts_of(formed, *kept)
    yield from check_domains(rewrite.new, options.where, rewrite.old)
    yield from check_begun(rewrite.old, options.where)
    yield from check_begun(rewrite.new, options.where, rewrite.old)
    yield from check_apart(after)
    yield from check_order((before, after), options.allowed)


def about_the_program(verdict: Verdict) -> Verdict:
    """A fault that the program has before the step, too, is no difference, and is refuted of the program."""
    return replace(verdict, status=Status.REFUTED) if Because.OLD_FAULT in verdict.because else verdict


def _diagnostics(transform: Pass, rewrite: Rewrite, refused: Iterable[Verdict]) -> Iterable[Diagnostic]:
    # If the pass changed nothing, the fault was there before.
    subject = str(transform) if rewrite.new != rewrite.old else "the program itself"
    for verdict in refused:
        message = f"{subject}: {refusal_text(verdict)}"
        code, hint = _code(transform, rewrite, verdict)
        place = place_of_claim(verdict.claim, rewrite.new)
        yield Diagnostic(code, message, place, related=tuple(_further(verdict, rewrite.new, place)), help=hint)


# Claims that a dropped branch breaks if its iterations are observable; accesses out of bounds have their own text.
_SEEN = (claims.OTHER_VALUE, claims.OTHER_END, claims.UNDEFINED_READ)


def _code(transform: Pass, rewrite: Rewrite, verdict: Verdict) -> tuple[str, str | None]:
    """The code of a verdict that is not proved, and a remedy if one is known."""
    code = verdict.code
    if not transform.drops_branches or code not in _SEEN or rewrite.new == rewrite.old:
        return code, hint_of(verdict)
    stated = {
        name
        for name, record in layout_records(rewrite.old).items()
        if any(step.contract is not None for step in record.steps)
    }
    filled = sorted({buffer.name for buffer in all_buffers(rewrite.old) if buffer.data.name in stated})
    if not filled:
        return (
            codes.BRANCH_NEEDED,
            "padding can make a branch unnecessary, once transform_layout(..., pad_value=...) says what it holds",
        )
    return codes.PAD_VALUE, f"`layoutproof pad-values` tries other values for the padding of {', '.join(filled)}"


def _further(verdict: Verdict, func: PrimFunc, first: Span | None) -> Iterator[tuple[Span, str]]:
    """Further lines of the reason, if two places matter: the accesses of a race."""
    lines = dict(reversed(verdict.related)) if first is not None and verdict.status is Status.REFUTED else {}
    for line, what in lines.items():
        place = line_span(func, line)
        if first is not None and place is not None and line != first.line:
            yield place, what


def place_of_claim(claim: Claim, func: PrimFunc) -> Span | None:
    """The line of a claim, in the text that the function was read from; else the function's own place."""
    line = claim.place.line if claim.place is not None else None
    return line_span(func, line) if line is not None else func.span


def line_span(func: PrimFunc, line: int) -> Span | None:
    """A line of the text that a function was read from."""
    if func.span is None:
        return None
    source = func.span.source
    text = source.line(line)
    return Span(source, line, len(text) - len(text.lstrip()), line, len(text.rstrip()))


@dataclass(frozen=True, slots=True)
class Step(Shown):
    """One applied transform: the pass, the rewrite that it proposed, and the verdicts under which it was kept.

    `where` was the precondition on symbols, `allowed` the fast-math assumptions that proofs could use.
    """

    transform: Pass
    rewrite: Rewrite
    verdicts: tuple[Verdict, ...]
    where: Expr | None = None
    allowed: FastMathSet = ALL

    def __repr__(self) -> str:
        return f"<{self.status.value} step {self.transform}>"

    @property
    def record(self) -> StepRecord:
        """The step as certificates have it: kernels as programs with parallel loops, if they can be written so."""
        rewrite = as_loops(self.rewrite)
        return StepRecord(self.transform.primitive, self.transform.arguments(), rewrite, self.where, self.allowed)

    @property
    def status(self) -> Status:
        """The worst of the verdicts."""
        return worst(v.status for v in self.verdicts)

    def to_dict(self) -> dict[str, Any]:
        """The step as JSON has it."""
        obligations = [v.to_dict() for v in self.verdicts]
        return {
            "primitive": self.transform.primitive,
            "arguments": self.transform.arguments(),
            "obligations": obligations,
        }

    def __str__(self) -> str:
        return str(self.transform)


def prove_step(
    func: PrimFunc, transform: Pass, options: ProofOptions = DEFAULTS, known: tuple[Verdict, ...] | None = None
) -> Step:
    """The checked step of a pass on a function. Raises IllegalTransform if it does not apply or is not proved.

    `known` are verdicts on `func` as it is, under the same `where`: they are kept if the pass changes nothing.
    """
    part = try_in_part(transform, func)
    if part is not None and not (options.fixed and part.witness.changes_interface) and part.new != func:
        try:
            verdicts = _check_meaning(transform, part, options)
            return Step(transform, part, verdicts, options.where, options.allowed)
        except IllegalTransform:
            pass  # The whole program may have it otherwise, and is what a refusal is about.
    with refusing():
        rewrite = transform.propose(func)
    if options.fixed and rewrite.witness.changes_interface:
        names = ", ".join(rewrite.witness.changes_interface)
        message = (
            f"{transform.primitive} would change the layout of the parameter {names}, and the schedule's interface is "
            "fixed"
        )
        raise IllegalTransform(Diagnostic(codes.FIXED_INTERFACE, message, func.span))
    if known is not None and rewrite.new == func:
        # Verdicts that needed fast-math assumptions are about how the program came about.
        verdicts = tuple(v for v in known if not v.strictness)
    else:
        verdicts = check_step(transform, rewrite, options)
    return Step(transform, rewrite, verdicts, options.where, options.allowed)
