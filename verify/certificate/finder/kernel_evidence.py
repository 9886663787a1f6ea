"""Evidence for the kernel: inverses of theta, where values come from, and refutations of the questions that it asks; as
a certificate has it, plain JSON with maps as texts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from layoutproof.ir.notations.rewrite_text import parse_rewrite
from layoutproof.verify.certificate.finder.integer_refutations import find_refutation
from layoutproof.verify.certificate.finder.inverses import fills_of, inverses_of, text_of
from layoutproof.verify.certificate.finder.sources import copies_of, sources_of
from layoutproof.verify.certificate.sealed_files import Document
from layoutproof.verify.kernel.evidence import JudgedStep, digest_of, judge_step, not_understood, read_evidence
from layoutproof.verify.kernel.integers import Question
from layoutproof.verify.kernel.judge import Judged
from layoutproof.verify.kernel.programs import TRUE, Map
from layoutproof.verify.kernel.reader import read_rewrite
from layoutproof.verify.kernel.rejected import FAILURES, Rejected
from layoutproof.verify.kernel.step import Copies, Evidence, Source
from layoutproof.verify.values.fast_math import FastMathSet


@dataclass
class Found:
    """The evidence as JSON, and the refutations of the questions asked, by their digests. `known` has what was
    looked for before, None where nothing was found.
    """

    evidence: Document = field(default_factory=dict)
    proofs: dict[str, object] = field(default_factory=dict)
    known: dict[str, object] = field(default_factory=dict)

    def refutation(self, question: Question) -> object:
        """The proof of a question. Raises Rejected where none is found."""
        key = digest_of(question)
        if key not in self.known:
            self.known[key] = find_refutation(question)
        if self.known[key] is None:
            raise Rejected("no refutation was found")
        self.proofs[key] = self.known[key]
        return self.proofs[key]


def try_kernel(text: str, allowed: FastMathSet = frozenset()) -> tuple[tuple[Judged, ...], Found]:
    """The kernel's judgement on a rewrite's text, with the evidence that was found for it."""
    step, found = _tried(text, allowed)
    return step.claims, found


def _tried(text: str, allowed: FastMathSet) -> tuple[JudgedStep, Found]:
    """First without values that take another way through memory, which most steps have not."""
    first = _judged(text, allowed, Found(), with_copies=False)
    if not _rejected(first[0]):
        return first
    second = _judged(text, allowed, Found(known=first[1].known), with_copies=True)
    return first if _rejected(first[0]) <= _rejected(second[0]) else second


def _judged(text: str, allowed: FastMathSet, found: Found, *, with_copies: bool) -> tuple[JudgedStep, Found]:
    """What the kernel says where it has read the evidence as it stands in a certificate."""
    rewrite = read_rewrite(text)
    found.evidence = plain_evidence(evidence_for(text, found, with_copies=with_copies))
    evidence = replace(read_evidence(found.evidence, {}, rewrite), refutation=found.refutation)
    return judge_step(rewrite, evidence, frozenset(allowed)), found


def _rejected(step: JudgedStep) -> int:
    return sum(not claim.is_accepted for claim in step.claims)


def judge_text(text: str, allowed: FastMathSet = frozenset()) -> JudgedStep:
    """The kernel's judgement on a text, whether it reads it or not."""
    try:
        return _tried(text, allowed)[0]
    except FAILURES as problem:
        return not_understood(problem)


def find_evidence(text: str, allowed: FastMathSet) -> tuple[Document | None, dict[str, object]]:
    """The evidence for a step, as JSON, and the refutations by the digests of their questions; None for a text that the
    kernel does not read.
    """
    try:
        _, found = _tried(text, allowed)
    except FAILURES:
        return None, {}
    return found.evidence, found.proofs


def evidence_for(text: str, found: Found, *, with_copies: bool = False) -> Evidence:
    """The evidence that is found for a rewrite's text, that of values that take another way only if it is asked for."""
    program = read_rewrite(text).new
    copies = copies_of(read_rewrite(text)) if with_copies else Copies()
    alone = {data for data, cells in copies.memories.items() if cells is None}
    left_out = {s.number for s in program.stores if program.buffers[s.buffer].data in alone}
    fills, backs = fills_of(parse_rewrite(text), text)
    return Evidence(found.refutation, inverses_of(text, left_out), sources_of(text), fills, backs, copies)


def plain_evidence(evidence: Evidence) -> Document:
    """Evidence as JSON (see `verify/kernel/evidence.py`), without what has no text."""
    copies = evidence.copies
    every: dict[str, list[Document]] = {
        "inverses": [
            {"old_store": number, "part": entry.part, **_map(entry.map)}
            for number, entries in evidence.inverses.items()
            for entry in entries
        ],
        "sources": [{"new_store": store, "load": load, **_source(s)} for (store, load), s in evidence.sources.items()],
        "fills": [{"data": data, **_source(source)} for data, source in evidence.fills.items()],
        "backs": [{"data": data, **_map(back)} for data, back in evidence.backs.items()],
        "memories": [
            {"data": data, "of": "", "map": "lambda: []"}
            if cells is None
            else {"data": data, "of": cells[0], **_map(cells[1])}
            for data, cells in copies.memories.items()
        ],
        "followed": [{"program": side, "store": number} for side, number in copies.origins],
        "origins": [
            {"program": side, "store": number, "load": load, **_source(piece)}
            for (side, number), loads in copies.origins.items()
            for load, pieces in loads.items()
            for piece in pieces
        ],
        "covers": [{"new_store": number, **_source(source)} for number, source in copies.covers.items()],
    }
    return {kind: [entry for entry in entries if entry.get("map") != ""] for kind, entries in every.items()}


def _source(source: Source) -> Document:
    return {"kind": source.kind, "index": source.index, **_map(source.map)}


def _map(given: Map) -> Document:
    """A map as text, with names by position; empty where an expression has no text."""
    names = {name: f"x{number}" for number, name in enumerate(given.names)}
    texts = [text_of(output, names) for output in given.outputs]
    where = "" if given.where == TRUE else text_of(given.where, names)
    if None in texts or where is None:
        return {"map": ""}
    inputs = f"lambda {', '.join(names.values())}" if names else "lambda"
    return {"map": f"{inputs}: [{', '.join(filter(None, texts))}]" + (f" where {where}" if where else "")}
