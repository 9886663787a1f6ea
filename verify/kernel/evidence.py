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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from json import dumps
from typing import Any, cast

from layoutproof.verify.kernel.integers import Question
from layoutproof.verify.kernel.judge import Evidence, Judged, judge_rewrite
from layoutproof.verify.kernel.polynomials import Poly, integer_of, list_of
from layoutproof.verify.kernel.programs import Cells, Program, Rewrite, Statement
from layoutproof.verify.kernel.reader import read_map, read_rewrite, scope_of
from layoutproof.verify.kernel.rejected import FAILURES, Rejected, reason_of
from layoutproof.verify.kernel.step import Copies, Inverse, Map, Source

_KINDS = {"inverses", "sources", "fills", "backs", "memories", "followed", "origins", "covers"}
_MOST = 100_000  # steps, lines, entries


def digest_of(question: Question) -> str:
    """The name of a question: by it a refutation is looked up, and then checked against the question itself."""
    plain = [
        _plain(question.facts),
        _plain(question.zeros),
        [[[_plain(c.facts), _plain(c.zeros)] for c in cases] for cases in question.choices],
    ]
    return sha256(dumps(plain).encode()).hexdigest()[:24]


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
    last: Program | None = None
    refutations = _field(document, "refutations", dict)
    for number, entry in enumerate(list_of(_field(document, "steps", list), _MOST, "the list of steps")):
        rewrite: Rewrite | None = None
        try:
            rewrite = read_rewrite(_text(_field(entry, "rewrite", list)))
            allowed = frozenset(_text(_field(entry, "licences", list)).split())
            step = judge_step(rewrite, read_evidence(_field(entry, "kernel", dict), refutations, rewrite), allowed)
        except FAILURES as problem:
            step = not_understood(problem)
        if number:
            same = rewrite is not None and last is not None and _bare(rewrite.old) == _bare(last)
            reason = None if same else "the step begins with another program"
            begins = Judged("begins", 0, "the step begins with the program that the one before ends with", reason)
            step = replace(step, claims=(begins, *step.claims))
        last = rewrite.new if rewrite is not None else None
        found.append(step)
    return tuple(found)


def judge_step(rewrite: Rewrite, evidence: Evidence, allowed: frozenset[str]) -> JudgedStep:
    """The claims bit for bit, or, where that does not do, under the fast-math assumptions that are allowed."""
    exact = JudgedStep(judge_rewrite(rewrite, evidence))
    if not allowed or all(claim.is_accepted for claim in exact.claims):
        return exact
    relaxed = JudgedStep(judge_rewrite(rewrite, evidence, allowed), tuple(sorted(allowed)))
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
    old, new = rewrite.old, rewrite.new

    def refutation(question: Question) -> object:
        proof = proofs.get(digest_of(question))
        if proof is None:
            raise Rejected("no refutation is given")
        return proof

    inverses: dict[int, list[Inverse]] = {}
    for entry in _entries(kinds, "inverses"):
        number = _number(entry, "old_store")
        inverses.setdefault(number, []).append(Inverse(_number(entry, "part"), _map(entry, old, _store(old, number))))
    sources = {
        (_number(entry, "new_store"), _number(entry, "load")): _source(
            entry, new, _store(new, _number(entry, "new_store"))
        )
        for entry in _entries(kinds, "sources")
    }
    fills = {_field(entry, "data", str): _source(entry, new) for entry in _entries(kinds, "fills")}
    backs = {_field(entry, "data", str): _map(entry, new) for entry in _entries(kinds, "backs")}
    return Evidence(refutation, inverses, sources, fills, backs, _copies(kinds, rewrite))


def _copies(kinds: Mapping[str, object], rewrite: Rewrite) -> Copies:
    memories: dict[str, Cells | None] = {}
    for entry in _entries(kinds, "memories"):
        data, of = _field(entry, "data", str), _field(entry, "of", str)
        cells = _map(entry, rewrite.new)
        memories[data] = (of, cells.names, cells.outputs) if of else None
    programs = {"old": rewrite.old, "new": rewrite.new}
    origins: dict[tuple[str, int], dict[int, list[Source]]] = {}
    for entry in (*_entries(kinds, "followed"), *_entries(kinds, "origins")):
        side, number = _field(entry, "program", str), _number(entry, "store")
        if side not in programs:
            raise Rejected("a program of the evidence is neither old nor new")
        loads = origins.setdefault((side, number), {})
        if "load" in _object(entry):
            source = _source(entry, programs[side], _store(programs[side], number))
            loads.setdefault(_number(entry, "load"), []).append(source)
    covers: dict[int, Source] = {}
    for entry in _entries(kinds, "covers"):
        number = _number(entry, "new_store")
        covers[number] = _source(entry, rewrite.new, _store(rewrite.new, number))
    return Copies(memories, origins, covers)


def _entries(kinds: Mapping[str, object], kind: str) -> list[object]:
    return list_of(kinds[kind], _MOST, f"the list of {kind}")


def _source(entry: object, program: Program, store: Statement | None = None) -> Source:
    return Source(_field(entry, "kind", str), _number(entry, "index"), _map(entry, program, store))


def _object(data: object) -> Mapping[str, object]:
    if type(data) is not dict:
        raise Rejected("a part of the evidence is no object, or is missing")
    return cast("dict[str, object]", data)


def _field(entry: object, name: str, kind: type) -> Any:
    value = _object(entry).get(name)
    if type(value) is not kind:
        raise Rejected(f"{name} is missing, or is not what it should be")
    return value


def _number(entry: object, name: str) -> int:
    return integer_of(_field(entry, name, int), name)


def _store(program: Program, number: int) -> Statement:
    if not 0 <= number < len(program.stores):
        raise Rejected(f"there is no store {number}")
    return program.stores[number]


def _map(entry: object, program: Program, store: Statement | None = None) -> Map:
    loops = {loop.var: ("var", loop.dtype, loop.var) for loop in store.loops} if store is not None else {}
    names, outputs, where = read_map(_field(entry, "map", str), scope_of(program.symbols), loops)
    if names is None:
        raise Rejected("a map of the evidence begins with lambda")
    return Map(names, outputs, where)
