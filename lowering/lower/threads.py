"""Kernels with thread axes on their way to code: as parallel loops, once it is proved that no two threads disturb one
another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from layoutproof.ir.diagnostic import Diagnostic, error
from layoutproof.ir.intrinsics import OpaqueCall
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.threads.axes import has_threads
from layoutproof.ir.threads.kernel_text import SYNC
from layoutproof.ir.threads.sequential import Barriers, NoSequence, Sequential, sequential
from layoutproof.ir.visit import walk
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.passes.as_loops import check_overlap
from layoutproof.lowering.passes.illegal import IllegalTransform, hint_of
from layoutproof.lowering.passes.steps import line_span, place_of_claim
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.faults.races import prove_race_free
from layoutproof.verify.verdict.report import refusal_text
from layoutproof.verify.verdict.verdict import Status, Verdict

_NO_BARRIER = 'the text has no barrier: T.tvm_storage_sync("shared") is one'


def without_threads(func: PrimFunc) -> PrimFunc:
    """The function with marked parallel loops in place of thread axes; the function itself if it has none.

    Raises LayoutproofError (LP403) for a kernel that is not understood, such as one with a barrier that not all threads
    reach, and IllegalTransform where it is not proved that no two threads disturb one another.
    """
    if not has_threads(func.body):
        return func
    form = _form_of(func)
    refused = [verdict for verdict in _races(form) if verdict.status is not Status.PROVED]
    if refused:
        help_text = _NO_BARRIER if not any(_is_barrier(node) for node in walk(func.body)) else None
        raise IllegalTransform(list(_diagnostics(func, refused, help_text)), refused)
    return form.func


def _is_barrier(node: Node) -> bool:
    return isinstance(node, OpaqueCall) and node.function == SYNC


def _form_of(func: PrimFunc) -> Sequential:
    # Barriers are put in when blocks are lowered; plain loops have those that they have.
    form = sequential(func, Barriers.OF_BLOCKS, marked=True)
    if isinstance(form, NoSequence):
        raise error(codes.UNSUPPORTED, f"{func.name} has a kernel that cannot be run: {form.reason}", form.stmt.span)
    return form


def _races(form: Sequential) -> Iterator[Verdict]:
    yield from prove_race_free(Facts.of(form.func))
    for part in (form.apart, form.under_way):
        for verdict in prove_race_free(Facts.of(part)) if part is not None else ():
            # These parts follow a loop that may have no iteration: what is found there need not happen.
            undecided = verdict.status is Status.REFUTED
            yield replace(verdict, status=Status.UNKNOWN, counterexample=None) if undecided else verdict
    yield from check_overlap(form)


def _diagnostics(func: PrimFunc, refused: Iterable[Verdict], help_text: str | None) -> Iterator[Diagnostic]:
    for verdict in refused:
        message = f"{func.name}: {refusal_text(verdict)}"
        lines = dict(verdict.related)
        places = [place for line in lines if (place := line_span(func, line)) is not None]
        first = places[0] if places else place_of_claim(verdict.claim, func)
        further = tuple(zip(places[1:], list(lines.values())[1:], strict=False))
        hint = hint_of(verdict)
        yield Diagnostic(verdict.code, message, first, related=further, help=help_text if hint is None else hint)
