"""Certificates as the kernel reads them: plain JSON, of which nothing is believed. Malformed parts are Rejected.

    {"steps": [{"rewrite": [line, ...], "licences": [...], "kernel": KINDS}, ...], "refutations": {digest: proof}}

    inverses    [{"old_store", "part", "map"}]: the first map of an old store whose condition holds says at which
                instance of the part its instance is computed
    sources     [{"new_store", "load", "kind", "index", "map"}]: what is known of a load, see `step.Source`; -1 for the
                cell that is written
    fills       [{"data", "kind", "index", "map"}]: which store fills the padding of a memory, at which instance
    backs       [{"data", "map"}]: the inverse of f, on a memory
    memories    [{"data", "of", "map"}]: whose cells a temporary holds, and f; of no old memory if `of` is empty
    followed    [{"program", "store"}]: a store, of the "old" or "new" program, whose loads are followed to where their
                values come from: origins [{"program", "store", "load", "kind", "index", "map"}], the first that applies
    covers      [{"new_store", "kind", "index", "map"}]: which store stores to the cell after it

A map is a text, `lambda i: [i // 4, i % 4] where i < 14`, of the loops of the store, or the axes of the memory.
Refutations stand by the digest of their question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from json import dumps
from typing import Any, cast

from layoutproof.verify.kernel.integers import Question
from layoutproof.verify.kernel.judge import Judged, judged_in_turn, stated
from layoutproof.verify.kernel.polynomials import Poly, integer_of, list_of
from layoutproof.verify.kernel.programs import TRUE, Cells, Map, Program, Rewrite, Statement, variable
from layoutproof.verify.kernel.reader import read_map, read_rewrite, scope_of
from layoutproof.verify.kernel.rejected import FAILURES, Rejected, reason_of
from layoutproof.verify.kernel.step import Copies, Evidence, Inverse, Source

_KINDS = {"inverses", "sources", "fills", "backs", "memories", "followed", "origins", "covers"}
_MOST = 100_000  # steps, lines, entries


def digest_of(question: Question) -> str:
    """The name of a question: by it a refutation is looked up, and then checked against the question itself."""
    cases = [[[_plain(c.facts), _plain(c.zeros)] for c in cases] for cases in question.choices]
    return sha256(dumps([_plain(question.facts), _plain(question.zeros), cases]).encode()).hexdigest()[:24]


def _plain(polynomials: Sequence[Poly]) -> list[object]:
    return [polynomial.to_json() for polynomial in polynomials]


@dataclass(frozen=True, slots=True)
class JudgedStep:
    """The claims of a step, and the fast-math assumptions under which they are judged."""

    claims: tuple[Judged, ...]
    assumptions: tuple[str, ...] = ()


def judge_certificate(document: object) -> tuple[JudgedStep, ...]:
    """The claims of each step. What a schedule's last program does is what its first one does if all are accepted."""
    found: list[JudgedStep] = []
    first = last = None
    refutations = _field(document, "refutations", dict)
    for entry in list_of(_field(document, "steps", list), _MOST, "the list of steps"):
        rewrite: Rewrite | None = None
        try:
            rewrite = read_rewrite(_text(_field(entry, "rewrite", list)))
            allowed = frozenset(_text(_field(entry, "licences", list)).split())
            step = judge_step(rewrite, read_evidence(_field(entry, "kernel", dict), refutations, rewrite), allowed)
        except FAILURES as problem:
            step = not_understood(problem)
        if found:
            same = rewrite is not None and last is not None and _bare(rewrite.old) == _bare(last.new)
            reason = None if same else "the step begins with another program"
            if rewrite is not None and first is not None and rewrite.where not in (TRUE, first.where):
                reason = "the step has a precondition that the first one has not"
            begins = Judged("begins", 0, "the step begins with the program that the one before ends with", reason)
            step = replace(step, claims=(begins, *step.claims))
        else:
            first = rewrite
        last = rewrite
        found.append(step)
    return tuple(found)


def judge_step(rewrite: Rewrite, evidence: Evidence, allowed: frozenset[str]) -> JudgedStep:
    """The claims bit for bit, or, where that does not do, under fast-math assumptions that are allowed or stated."""
    allowed |= stated(rewrite)
    exact = JudgedStep(tuple(judged_in_turn(rewrite, evidence, frozenset())))
    if not allowed or all(claim.is_accepted for claim in exact.claims):
        return exact
    relaxed = JudgedStep(tuple(judged_in_turn(rewrite, evidence, allowed)), tuple(sorted(allowed)))
    return exact if [c.reason for c in relaxed.claims] == [c.reason for c in exact.claims] else relaxed


def not_understood(problem: BaseException) -> JudgedStep:
    """The one claim of a step that was not read."""
    return JudgedStep((Judged("understood", 0, "the step and its evidence are understood", reason_of(problem)),))


def _text(lines: object) -> str:
    every = list_of(lines, _MOST, "a text")
    if not all(type(line) is str for line in every):
        raise Rejected("a line of a text is no text")
    return "\n".join(cast("list[str]", every))


def _bare(program: Program) -> Program:
    """The program without the lines of the text that it was read from."""
    statements = tuple(replace(statement, line=0) for statement in program.statements)
    return replace(program, statements=statements, insides=tuple(replace(inside, line=0) for inside in program.insides))


def read_evidence(data: object, refutations: object, rewrite: Rewrite) -> Evidence:
    """The evidence of a step."""
    kinds, proofs = _object(data), _object(refutations)
    if set(kinds) != _KINDS:
        raise Rejected(f"the evidence has other kinds than {', '.join(sorted(_KINDS))}")
    old, new, programs = rewrite.old, rewrite.new, {"old": rewrite.old, "new": rewrite.new}

    def refutation(question: Question) -> object:
        proof = proofs.get(digest_of(question))
        return proof if proof is not None else _missing("no refutation is given")

    inverses: dict[int, list[Inverse]] = {}
    for entry in _entries(kinds, "inverses"):
        inverse = Inverse(entry.number("part"), entry.map(old, "old_store"))
        inverses.setdefault(entry.number("old_store"), []).append(inverse)
    sources = {
        (e.number("new_store"), e.number("load")): e.source(new, "new_store") for e in _entries(kinds, "sources")
    }
    memories: dict[str, Cells | None] = {}
    for entry in _entries(kinds, "memories"):
        of, f = entry.text("of"), replace(entry.map(new), where=TRUE)
        memories[entry.text("data")] = (of, f) if of else None
    origins: dict[tuple[str, int], dict[int, list[Source]]] = {}
    for entry in (*_entries(kinds, "followed"), *_entries(kinds, "origins")):
        side = entry.text("program")
        program = programs.get(side) or _missing("a program of the evidence is neither old nor new")
        loads = origins.setdefault((side, entry.number("store")), {})
        if "load" in entry.fields:
            loads.setdefault(entry.number("load"), []).append(entry.source(program, "store"))
    fills = {entry.text("data"): entry.source(new) for entry in _entries(kinds, "fills")}
    backs = {entry.text("data"): entry.map(new) for entry in _entries(kinds, "backs")}
    covers = {entry.number("new_store"): entry.source(new, "new_store") for entry in _entries(kinds, "covers")}
    return Evidence(refutation, inverses, sources, fills, backs, Copies(memories, origins, covers))


def _missing(reason: str) -> Any:
    raise Rejected(reason)


def _object(data: object) -> Mapping[str, object]:
    if type(data) is not dict:
        raise Rejected("a part of the evidence is no object, or is missing")
    return cast("dict[str, object]", data)


def _field(entry: object, name: str, kind: type) -> Any:
    value = _object(entry).get(name)
    return value if type(value) is kind else _missing(f"{name} is missing, or is not what it should be")


def _entries(kinds: Mapping[str, object], kind: str) -> Iterator[_Entry]:
    return (_Entry(_object(entry)) for entry in list_of(kinds[kind], _MOST, f"the list of {kind}"))


@dataclass(frozen=True, slots=True)
class _Entry:
    """One entry of the evidence. Loops of a map are those of the store that `store` names, if it does."""

    fields: Mapping[str, object]

    def number(self, name: str) -> int:
        return integer_of(_field(self.fields, name, int), name)

    def text(self, name: str) -> str:
        return str(_field(self.fields, name, str))

    def source(self, program: Program, store: str = "") -> Source:
        return Source(self.text("kind"), self.number("index"), self.map(program, store))

    def map(self, program: Program, store: str = "") -> Map:
        loops = self._store(program, self.number(store)).loops if store else ()
        here = {loop.var: variable(loop) for loop in loops}
        names, outputs, where = read_map(self.text("map"), scope_of(program.symbols), here)
        return Map(names if names is not None else _missing("a map of the evidence begins with lambda"), outputs, where)

    def _store(self, program: Program, number: int) -> Statement:
        return program.stores[number] if 0 <= number < len(program.stores) else _missing(f"there is no store {number}")
