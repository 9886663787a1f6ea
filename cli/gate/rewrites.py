"""A rewrite that somebody wrote: two programs with a witness, judged as one item."""

from __future__ import annotations

from layoutproof.cli.gate import notes
from layoutproof.cli.gate.detail import detail_of_rewrite
from layoutproof.cli.gate.findings import obligation_of, of_verdict
from layoutproof.cli.gate.items import Item
from layoutproof.cli.gate.loading import text_of
from layoutproof.cli.gate.outcome import Kind, Outcome, Place, step_of
from layoutproof.ir.notations.rewrite_text import parse_litmus
from layoutproof.lowering.passes.steps import place_of_claim
from layoutproof.lowering.proof_cache.remembered import verdicts_of
from layoutproof.verify.certificate.certificate import certify
from layoutproof.verify.certificate.certificate import text_of as text_of_rewrite
from layoutproof.verify.certificate.reading import allowed_by
from layoutproof.verify.checker import StepRecord
from layoutproof.verify.lockstep.identity import prove_identity
from layoutproof.verify.values.fast_math import Licences
from layoutproof.verify.verdict.verdict import Status, worst


def judged_rewrite(item: Item, allowed: Licences, certificate: str | None = None, detail: bool = False) -> Outcome:
    """What the checker says of a rewrite's file (see `ir/notations/rewrite_text.py`), under licences that the run and its header allow.

    The certificate of one that is proved is written to `certificate`. What the file expects of itself is for `recheck`. Raises
    LayoutproofError for a text that is none.
    """
    litmus = parse_litmus(text_of(item.path), item.path)
    rewrite, where, licences = litmus.rewrite, litmus.header.where, allowed & allowed_by(litmus.header.strictness)
    verdicts = verdicts_of(rewrite, where, licences, True, "rewrite", {})
    if any(verdict.status is not Status.PROVED for verdict in verdicts):
        same = prove_identity(rewrite)
        verdicts = verdicts if same is None else (same,)
    status = worst(verdict.status for verdict in verdicts)
    findings = []
    for verdict in verdicts:
        if verdict.status is not Status.PROVED:
            span = place_of_claim(verdict.claim, rewrite.new)
            place = Place.of(span) if span is not None else Place(item.path, 1)
            # Neither the program after nor the witness follows from the program before.
            known_by = obligation_of(verdict.claim, "rewrite", {"text": text_of_rewrite(rewrite, where)}, rewrite.old)
            findings.append(of_verdict(verdict, "the rewrite", place, known_by))
    written = certificate is not None and status is Status.PROVED
    if certificate is not None and written:
        certify([StepRecord("rewrite", {}, rewrite, where, licences)], rewrite.old.name).save(certificate)
    steps = (step_of("rewrite", {}, verdicts),)
    return Outcome(
        Kind.REWRITE,
        item.name,
        item.path,
        Place(item.path, 1),
        status.value,
        steps,
        tuple(findings),
        notes.notes_of(verdicts, "the two programs do the same") if status is Status.PROVED else (),
        notes.seconds_of(steps),
        certificate=certificate if written else None,
        detail={"schedules": [detail_of_rewrite(rewrite, where)]} if detail else None,
    )
