"""The one place where the schedule asks whether a rewrite may be kept. Everything it asks stands in `layoutproof.verify`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError
from layoutproof.ir.expr import Expr
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.source import Span
from layoutproof.ir.wellformed import check_wellformed
from layoutproof.lowering import codes
from layoutproof.lowering.illegal import IllegalTransform, counterexample_text
from layoutproof.lowering.passes import Pass
from layoutproof.verify.checker import check_rewrite
from layoutproof.verify.values.licences import ALL, Licences
from layoutproof.verify.verdict import Status, Verdict

GOOD: frozenset[Status] = frozenset({Status.PROVED})
GOOD_OR_EMPTY: frozenset[Status] = frozenset({Status.PROVED, Status.VACUOUS})


def check_step(
    transform: Pass,
    rewrite: Rewrite,
    where: Expr | None = None,
    accepted: frozenset[Status] = GOOD,
    allowed: Licences = ALL,
    search: bool = True,
) -> tuple[Verdict, ...]:
    """The verdicts under which a rewrite is kept, all of an accepted status. Raises IllegalTransform with those that are not.

    `where` is what the function assumed of its constants, also after the assumption was removed; `allowed` are the float licences
    that proofs may use. Without `search` no counterexample is looked for where a proof fails.
    """
    malformed = check_wellformed(rewrite.new)
    if malformed:
        raise IllegalTransform(malformed)
    try:
        verdicts = check_rewrite(rewrite, where, allowed=allowed, search=search)
    except LayoutproofError as problem:
        raise IllegalTransform(problem.diagnostics) from problem
    refused = [v for v in verdicts if v.status not in accepted]
    if refused:
        raise IllegalTransform(list(_diagnostics(transform, rewrite, refused)), refused)
    return verdicts


def _diagnostics(transform: Pass, rewrite: Rewrite, refused: Iterable[Verdict]) -> Iterable[Diagnostic]:
    # A pass that changed nothing only brought to light what the program was like before.
    subject = str(transform) if rewrite.new != rewrite.old else f"the program, before {transform.primitive}"
    for verdict in refused:
        word = {Status.REFUTED: "is refuted", Status.UNKNOWN: "is not decided", Status.VACUOUS: "holds only of nothing"}[verdict.status]
        message = f"{subject}: {verdict.claim} {word}: {counterexample_text(verdict)}"
        yield Diagnostic(codes.NOT_PROVED, message, _place(verdict.claim, rewrite.new))


_LINE = re.compile(r"\bline (\d+)\b")


def _place(claim: str, func: PrimFunc) -> Span | None:
    """The line that a claim names, in the text that the function was read from; else where the function stands."""
    found = _LINE.search(claim)
    if func.span is None or found is None:
        return func.span
    source, line = func.span.source, int(found[1])
    text = source.line(line)
    return Span(source, line, len(text) - len(text.lstrip()), line, len(text.rstrip()))
