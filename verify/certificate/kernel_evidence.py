"""Evidence for the kernel: inverses of theta, and refutations of the questions that it asks. Nothing here is trusted:
what is wrong is rejected.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import Binary, IntImm
from layoutproof.ir.expr import Expr as IrExpr
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.notations.rewrite_text import parse_rewrite
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.rewrite import InstanceMap, Rewrite
from layoutproof.ir.stmt import For
from layoutproof.ir.visit import loops_of_stores
from layoutproof.verify.certificate.copies_evidence import copies_of, located
from layoutproof.verify.certificate.integer_refutations import find_refutation
from layoutproof.verify.certificate.sealed_files import Document
from layoutproof.verify.kernel.encoding import Context
from layoutproof.verify.kernel.evidence import JudgedStep, digest_of, judge_step, not_understood, read_evidence
from layoutproof.verify.kernel.integers import Question
from layoutproof.verify.kernel.judge import Judged
from layoutproof.verify.kernel.polynomials import Poly
from layoutproof.verify.kernel.programs import TRUE, Expr, Map, Program, Statement, loads_of, walk
from layoutproof.verify.kernel.reader import read_map, read_rewrite, scope_of
from layoutproof.verify.kernel.rejected import FAILURES, Rejected
from layoutproof.verify.kernel.step import Copies, Evidence, Inverse, Source
from layoutproof.verify.maps.map_facts import report_on
from layoutproof.verify.values.fast_math import Licences


@dataclass
class Found:
    """The evidence as JSON, and refutations by the digest of their question, found when they are asked for."""

    evidence: Document = field(default_factory=dict)
    proofs: dict[str, object] = field(default_factory=dict)

    def refutation(self, question: Question) -> object:
        """The proof of a question. Raises Rejected where none is found."""
        key = digest_of(question)
        if key not in self.proofs:
            self.proofs[key] = find_refutation(question)
        if self.proofs[key] is None:
            raise Rejected("no refutation was found")
        return self.proofs[key]


def inverses_of(text: str, left_out: Container[int] = ()) -> dict[int, list[Inverse]]:
    """For each old store which part of theta computes it, and by which map; nothing where none was found. Of several
    parts, each has the condition that it computes the instance, but the last one, which has the rest. Of some new
    stores theta says nothing.
    """
    rewrite, plain = parse_rewrite(text), read_rewrite(text)
    loops = loops_of_stores(rewrite.new.body)
    given: dict[int, list[InstanceMap]] = {}
    for each in rewrite.witness.instances:
        if each.instances is not None and each.old_store is not None:
            given.setdefault(each.new_store, []).append(each)
    found: dict[int, list[tuple[Inverse, Map, Statement]]] = {}
    part = -1
    for store in (s for s in plain.new.stores if s.number not in left_out):
        for line, each in zip(plain.theta.get(store.number, ()), given.get(store.number, ()), strict=False):
            part += 1
            theta = line[1]
            assert each.instances is not None
            inverse = _inverse(theta, each.instances, loops[store.number], store, plain.new)
            if inverse is not None:
                found.setdefault(line[0], []).append((Inverse(part, inverse), theta, store))
    return {old: [*(_conditional(*entry) for entry in entries[:-1]), entries[-1][0]] for old, entries in found.items()}


def _inverse(theta: Map, stated: IndexMap, loops: Sequence[For], store: Statement, program: Program) -> Map | None:
    """The inverse of a line of theta; of one that says nothing of lanes, by the lane's name."""
    extents: list[int | IrExpr] = [loop.extent for loop in loops]
    if len(stated.inputs) > len(loops):
        extents.append(store.loops[-1].extent[2])
    names: tuple[str, ...] | None = tuple(f"o{k}" for k in range(len(stated.outputs)))
    outputs: tuple[Expr, ...] = ()
    if stated.inputs:
        # Instances that guards exclude may lie below zero, where the engine for maps of cells gives no inverse.
        for shift in (0, 1 << 10):
            moved = tuple(Binary(BinaryOp.ADD, e, IntImm(shift, e.dtype)) if shift else e for e in stated.outputs)
            inverse = _map_inverse(replace(stated, outputs=moved), extents)
            if inverse is not None:
                break
        else:
            return None
        names, outputs, _ = read_map(index_map_text(inverse), scope_of(program.symbols), {})
        back = {n: ("+", "int32", ("var", "int32", n), ("const", "int32", shift)) for n in names or () if shift}
        outputs = tuple(_substituted(output, back) for output in outputs)
    assert names is not None
    rest = theta.outputs[len(names) :]
    if len(outputs) + len(rest) != len(theta.names):
        return None
    return Map((*names, *(e[2] for e in rest)), (*outputs, *rest))


def _map_inverse(stated: IndexMap, extents: Sequence[int | IrExpr]) -> IndexMap | None:
    try:
        return report_on(stated, tuple(extents)).inverse
    except LayoutproofError:
        return None


def _conditional(inverse: Inverse, theta: Map, store: Statement) -> Inverse:
    """The inverse with the condition that theta takes what it gives back to where it is from, or, if it does so
    always, that it gives values of the loops.
    """
    names, there = inverse.map.names, dict(zip(theta.names, inverse.map.outputs, strict=True))
    context = Context([])
    values = {
        e[2]: Poly.var(e[2]) for output in (*theta.outputs, *there.values()) for e in walk(output) if e[0] == "var"
    }
    values |= {name: Poly.var(name) for name in names}
    conditions: list[Expr] = []
    for name, output in zip(names, theta.outputs, strict=True):
        back = _substituted(output, there)
        if context.number(back, values) != values[name]:
            conditions.append(("==", "bool", back, ("var", back[1], name)))
    if not conditions:
        for loop, value in zip(store.loops, inverse.map.outputs, strict=True):
            if loop.start[0] == loop.extent[0] == "const":
                conditions += [(">=", "bool", value, loop.start)]
                conditions += [("<", "bool", value, ("const", loop.dtype, loop.start[2] + loop.extent[2]))]
    if theta.where != TRUE:
        conditions.append(_substituted(theta.where, there))
    where = reduce(lambda a, b: ("and", "bool", a, b), conditions) if conditions else TRUE
    return Inverse(inverse.part, Map(names, inverse.map.outputs, where))


def _substituted(e: Expr, values: Mapping[str, Expr]) -> Expr:
    if e[0] == "var":
        return values.get(e[2], e)
    return tuple(_substituted(x, values) if isinstance(x, tuple) else x for x in e)


def fills_of(rewrite: Rewrite, text: str) -> tuple[dict[str, Source], dict[str, Map]]:
    """By memory whose layout changes: a store of a constant that no line of theta names, at the cell that it writes by
    its loops; and the inverse of the cell map.
    """
    program = read_rewrite(text).new
    computed = {each.new_store for each in rewrite.witness.instances if each.old_store is not None}
    fills: dict[str, Source] = {}
    backs: dict[str, Map] = {}
    shapes = {buffer.data.name: buffer.shape for buffer in rewrite.old.buffers}
    for cells in rewrite.witness.cells:
        if cells.old_data not in shapes:
            continue
        inverse = report_on(cells.cells, shapes[cells.old_data]).inverse
        if inverse is not None:
            names, outputs, _ = read_map(index_map_text(inverse), scope_of(program.symbols), {})
            backs[cells.new_data] = Map(names or (), outputs)
        for store in program.stores:
            axes = tuple(f"q{k}" for k in range(len(store.indices)))
            given = {index: ("var", "int32", axis) for index, axis in zip(store.indices, axes, strict=True)}
            loops = [("var", loop.dtype, loop.var) for loop in store.loops]
            if (
                program.buffers[store.buffer].data == cells.new_data
                and store.number not in computed
                and store.value[0] == "const"
                and all(loop in given for loop in loops)
            ):
                fills[cells.new_data] = Source("store", store.number, Map(axes, tuple(given[loop] for loop in loops)))
    return fills, backs


def try_kernel(text: str, allowed: Licences = frozenset()) -> tuple[tuple[Judged, ...], Found]:
    """The kernel's judgement on a rewrite's text, with the evidence that was found for it."""
    step, found = _tried(text, allowed)
    return step.claims, found


def _tried(text: str, allowed: Licences) -> tuple[JudgedStep, Found]:
    """First without values that take another way through memory, which most steps have not."""
    first = _judged(text, allowed, with_copies=False)
    if not _rejected(first[0]):
        return first
    second = _judged(text, allowed, with_copies=True)
    return first if _rejected(first[0]) <= _rejected(second[0]) else second


def _judged(text: str, allowed: Licences, *, with_copies: bool) -> tuple[JudgedStep, Found]:
    """What the kernel says where it has read the evidence as it stands in a certificate."""
    found, rewrite = Found(), read_rewrite(text)
    found.evidence = plain_evidence(evidence_for(text, found, with_copies=with_copies))
    evidence = replace(read_evidence(found.evidence, {}, rewrite), refutation=found.refutation)
    return judge_step(rewrite, evidence, frozenset(allowed)), found


def _rejected(step: JudgedStep) -> int:
    return sum(not claim.is_accepted for claim in step.claims)


def judge_text(text: str, allowed: Licences = frozenset()) -> JudgedStep:
    """The kernel's judgement on a text, whether it reads it or not."""
    try:
        return _tried(text, allowed)[0]
    except FAILURES as problem:
        return not_understood(problem)


def find_evidence(text: str, allowed: Licences) -> tuple[Document | None, dict[str, object]]:
    """The evidence for a step, as JSON, and the refutations by the digests of their questions; None for a text that the
    kernel does not read.
    """
    try:
        _, found = _tried(text, allowed)
    except FAILURES:
        return None, {}
    return found.evidence, {name: proof for name, proof in found.proofs.items() if proof is not None}


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
    texts = [_text(output, names) for output in given.outputs]
    where = "" if given.where == TRUE else _text(given.where, names)
    if None in texts or where is None:
        return {"map": ""}
    inputs = f"lambda {', '.join(names.values())}" if names else "lambda"
    return {"map": f"{inputs}: [{', '.join(filter(None, texts))}]" + (f" where {where}" if where else "")}


_INFIX = ("+", "-", "*", "//", "%", "and", "or", "<", "<=", ">", ">=", "==", "!=", "&", "|", "^", "<<", ">>")


def _text(e: Expr, names: Mapping[str, str]) -> str | None:
    if e[0] == "const":
        return str(e[2]) if e[1] in ("int32", "bool") else f"T.{e[1]}({e[2]})"
    if e[0] == "var":
        return names.get(e[2], e[2])
    parts = [_text(part, names) for part in e[2:] if isinstance(part, tuple)]
    if None in parts or e[0] not in (*_INFIX, "min", "max", "truncdiv", "truncmod", "not", "cast"):
        return None
    if e[0] in _INFIX:
        return f"({parts[0]} {e[0]} {parts[1]})"
    if e[0] == "not":
        return f"(not {parts[0]})"
    return f"T.{e[1] if e[0] == 'cast' else e[0]}({', '.join(filter(None, parts))})"


def evidence_for(text: str, found: Found, *, with_copies: bool = False) -> Evidence:
    """The evidence that is found for a rewrite's text, that of values that take another way only if it is asked for."""
    program = read_rewrite(text).new
    copies = copies_of(read_rewrite(text)) if with_copies else Copies()
    alone = {data for data, cells in copies.memories.items() if cells is None}
    left_out = {s.number for s in program.stores if program.buffers[s.buffer].data in alone}
    fills, backs = fills_of(parse_rewrite(text), text)
    return Evidence(found.refutation, inverses_of(text, left_out), sources_of(text), fills, backs, copies)


def sources_of(text: str) -> dict[tuple[int, int], Source]:
    """What may be known of the loads of each new store: an assumption whose element it may be, or a store of a constant
    (an init, say) to its memory in the same nest.
    """
    program = read_rewrite(text).new
    found: dict[tuple[int, int], Source] = {}
    for store in program.stores:
        cell = ("load", store.value[1], store.buffer, store.indices)
        loads = list(dict.fromkeys(loads_of(store.value)))
        for k, load in [*enumerate(loads), *([] if cell in loads else [(-1, cell)])]:
            source = _assumption(program, store, load) or _writer(program, store, load)
            if source is not None:
                found[store.number, k] = source
    return found


def _assumption(program: Program, store: Statement, load: Expr) -> Source | None:
    """The assumption of whose element's index a load gives every loop."""
    for index, statement in enumerate(program.statements):
        if statement.kind == "assume":
            for said in loads_of(statement.condition):
                if said[2] == load[2]:
                    given = dict(zip(said[3], load[3], strict=True))
                    loops = [("var", loop.dtype, loop.var) for loop in statement.loops]
                    if all(loop in given for loop in loops):
                        names = tuple(loop.var for loop in store.loops)
                        return Source("assume", index, Map(names, tuple(given[loop] for loop in loops)))
    return None


def _writer(program: Program, store: Statement, load: Expr) -> Source | None:
    """A store to the memory, of a constant if there is one: its loops have the values of those around the load, or
    start.
    """
    data = program.buffers[load[2]].data
    writers = [s for s in program.stores if s is not store and program.buffers[s.buffer].data == data]
    for writer in sorted(writers, key=lambda s: s.value[0] != "const"):
        outputs, _ = located(writer, load[3], store.loops, is_last=False)
        return Source("store", writer.number, Map(tuple(loop.var for loop in store.loops), outputs))
    return None
