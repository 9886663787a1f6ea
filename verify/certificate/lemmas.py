"""Lemmas with the queries that prove them: rewrite rules, and facts about a layout for all shapes; and their files
(`proofs/rules`, `proofs/laws`, `proofs/layouts`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutproof.ir.buffer import Buffer, BufferLoad, make_buffer
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import HANDLE, DType, numpy_dtype
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import FALSE, TRUE, Expr, Not, Var, const
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.interp import Fault, FaultKind, run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Domain, Rule
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import Attributes, BufferStore, ForKind
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import free_variables, substitute
from layoutproof.verify.certificate.certificate import (
    check_form,
    check_table,
    queries_of_table,
    query_dict,
    query_id,
    versions,
)
from layoutproof.verify.certificate.sealed_files import (
    Document,
    chained,
    check_chain,
    from_bytes,
    read_whole,
    sealed,
    to_bytes,
    write_whole,
)
from layoutproof.verify.faults.facts import Stopwatch, proved, refuted, unknown, values_text
from layoutproof.verify.maps.check_map import read_question
from layoutproof.verify.maps.map_facts import report_on
from layoutproof.verify.maps.map_report import MapReport
from layoutproof.verify.maps.problem import make_problem
from layoutproof.verify.program.evidence import Evidence, NoInstance, OneToOne, Setting
from layoutproof.verify.program.instances import Dim, IterationDomain
from layoutproof.verify.program.questions import SmtQuery, at_least, below, differ, same
from layoutproof.verify.smt.encode_values import NotValue, ValueEncoder, disjunction, model_name
from layoutproof.verify.smt.encode_values import same as same_value
from layoutproof.verify.smt.index_arithmetic import IntEncoder, NotInteger
from layoutproof.verify.smt.smtlib import Writer, queries_of, written
from layoutproof.verify.smt.solver import Answer, Outcome, Query
from layoutproof.verify.verdict import codes
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status, Verdict

FORMAT = "layoutproof-lemmas"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Lemma:
    """One claim: `proved` under the assumptions of `strictness`, or `refuted` with the counterexample's values.

    `queries` are expected `unsat` for what holds, `sat` for what does not. `source` says where the claim is used or
    comes from; `exceptions` names engines or kinds of questions that cannot be asked, with the reason.
    """

    name: str
    claim: str
    status: Status
    queries: tuple[SmtQuery, ...]
    strictness: tuple[str, ...] = ()
    source: str | None = None
    counterexample: Mapping[str, Any] | None = None
    exceptions: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> Document:
        """As in a file."""
        return {
            "name": self.name,
            "claim": self.claim,
            "status": self.status.value,
            "strictness": list(self.strictness),
            "source": self.source,
            "counterexample": dict(self.counterexample) if self.counterexample is not None else None,
            "queries": [query_id(query) for query in self.queries],
            "exceptions": [{"what": what, "reason": reason} for what, reason in self.exceptions],
        }


@dataclass(frozen=True, slots=True)
class LemmaFile:
    """Lemmas that belong together, and what they are about."""

    about: str
    lemmas: tuple[Lemma, ...]
    tools: Mapping[str, str] = field(default_factory=versions)

    def to_document(self) -> Document:
        """The sealed document."""
        table = {query_id(query): query for lemma in self.lemmas for query in lemma.queries}
        return sealed(
            {
                "format": FORMAT,
                "version": VERSION,
                "about": self.about,
                "tools": dict(self.tools),
                "lemmas": chained([lemma.to_dict() for lemma in self.lemmas]),
                "queries": {name: query_dict(query) for name, query in sorted(table.items())},
            }
        )

    def save(self, path: str | Path) -> None:
        """Write it, whole or not at all. Raises LayoutproofError."""
        write_whole(Path(path), to_bytes(self.to_document()))

    @staticmethod
    def load(path: str | Path) -> LemmaFile:
        """Read a file of lemmas. Raises LayoutproofError for one that is none, or was changed or cut off."""
        return LemmaFile.of_document(from_bytes(read_whole(Path(path)), str(path)), str(path))

    @staticmethod
    def of_document(document: Document, name: str) -> LemmaFile:
        """A document as lemmas. Raises LayoutproofError for one that is malformed or whose hashes do not fit."""
        check_form(document, name, FORMAT, VERSION)
        try:
            check_chain(document["lemmas"], f"{name}: lemmas")
            check_table(
                document["queries"], {query for lemma in document["lemmas"] for query in lemma["queries"]}, name
            )
            queries = queries_of_table(document["queries"])
            lemmas = tuple(_lemma(entry, queries) for entry in document["lemmas"])
            return LemmaFile(str(document["about"]), lemmas, dict(document["tools"]))
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise error(
                codes.CERTIFICATE_FORM, f"{name}: a part is missing or is of another kind: {problem}"
            ) from problem


def _lemma(entry: Document, queries: Mapping[str, SmtQuery]) -> Lemma:
    return Lemma(
        str(entry["name"]),
        str(entry["claim"]),
        Status(entry["status"]),
        tuple(queries[name] for name in _texts(entry["queries"])),
        tuple(_texts(entry["strictness"])),
        entry["source"],
        entry["counterexample"],
        tuple((str(e["what"]), str(e["reason"])) for e in entry["exceptions"]),
    )


def _texts(values: Sequence[Any]) -> list[str]:
    return [str(value) for value in values]


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout by name: its map as lambda text, its logical shape as text, and the precondition on its names."""

    name: str
    index_map: str
    shape: str
    where: str | None = None


def layout_lemmas(layout: Layout) -> tuple[Lemma, ...]:
    """The lemmas of one layout; an unproved claim is an `unknown` lemma without a query."""
    question = read_question(layout.index_map, layout.shape, layout.where)
    report, problem = report_on(*question), make_problem(*question)
    given, known = problem.given, report.physical_shape
    source = f"{index_map_text(given)} on [{layout.shape}]"
    if report.injective.status is not Status.PROVED or None in known:
        name, injective = f"{layout.name}: one place to each index", report.injective
        return (Lemma(name, injective.claim.text, injective.status, (), source=source),)
    box = [extent for extent in known if extent is not None]
    symbols = dict.fromkeys(v for e in (*problem.shape, *box) for v in free_variables(e))
    setting = Setting((problem.where,), tuple((v.name, 0, None) for v in symbols))
    engine = report.injective.engine
    inside = IterationDomain(_dims(given.inputs, problem.shape))
    found: list[tuple[str, str, Evidence]] = [
        (
            "one place to each index",
            report.injective.claim.text,
            OneToOne(given.inputs, problem.shape, given.outputs, problem.where, engine),
        ),
        (
            "inside the box",
            f"every place lies within [{_listed(box)}]",
            NoInstance(setting, inside, _outside(given.outputs, box), engine),
        ),
    ]
    if report.inverse is not None and report.padding.predicate is not None:
        found += _about_inverse(report, setting, box, report.inverse, report.padding.predicate)
    return tuple(_layout_lemma(f"{layout.name}: {name}", claim, evidence, source) for name, claim, evidence in found)


def _about_inverse(
    report: MapReport, setting: Setting, box: Sequence[Expr], inverse: IndexMap, padding: Expr
) -> Iterator[tuple[str, str, Evidence]]:
    given, shape, engine = report.index_map, report.shape, report.injective.engine
    text, where = index_map_text(inverse), expr_text(padding, "plain")
    back = inverse.map_indices(given.outputs)
    inside = IterationDomain(_dims(given.inputs, shape))
    each = tuple((differ(b, v),) for b, v in zip(back, given.inputs, strict=True))
    if each:
        yield (
            "the inverse leads back",
            f"{text} leads from each place to its index",
            NoInstance(setting, inside, each, engine),
        )
    cells = tuple(inverse.inputs)
    places = IterationDomain(_dims(cells, box))
    index = list(inverse.outputs)
    there = given.map_indices(index)
    wrong = [*_outside(index, shape), *((differ(a, c),) for a, c in zip(there, cells, strict=True))]
    kept = tuple((Not(padding), *conditions) for conditions in wrong)
    yield (
        "no other places",
        f"every place of the box where not ({where}) is that of its index by the inverse",
        NoInstance(setting, places, kept, engine),
    )
    if padding != FALSE:
        both = IterationDomain((*_dims(given.inputs, shape), *_dims(cells, box)))
        reached = (padding, *(same(o, c) for o, c in zip(given.outputs, cells, strict=True)))
        yield "padding is no place", f"where {where} there is no index", NoInstance(setting, both, (reached,), engine)


def _dims(variables: Sequence[Var], extents: Sequence[Expr]) -> tuple[Dim, ...]:
    return tuple(
        Dim(v, const(0, v.dtype), extent, ForKind.SERIAL) for v, extent in zip(variables, extents, strict=True)
    )


def _outside(index: Sequence[Expr], box: Sequence[Expr]) -> tuple[tuple[Expr, ...], ...]:
    return tuple(
        (condition,)
        for part, extent in zip(index, box, strict=True)
        for condition in (below(part, 0), at_least(part, extent))
    )


def _listed(exprs: Sequence[Expr]) -> str:
    return ", ".join(expr_text(e, "plain") for e in exprs)


def _layout_lemma(name: str, claim: str, evidence: Evidence, source: str) -> Lemma:
    queries, missing = queries_of([evidence])
    return Lemma(
        name, claim, Status.PROVED, queries, source=source, exceptions=tuple((m.what, m.reason) for m in missing)
    )


RLIMIT = 20_000_000
ENGINE = "z3"
# With more quotients than this, solvers decide `div` better than equations for quotients.
_EASY_QUOTIENTS = 2
_SEEDS = (1, 2, 3, 0)

Number = int | float | bool


def prove_rule(rule: Rule, rlimit: int = RLIMIT) -> Verdict:
    """Whether a rule holds, in its domain. A refutation gives the variables' values and was run."""
    watch = Stopwatch()
    where = f" where {expr_text(rule.condition, Style.PLAIN)}" if rule.condition != TRUE else ""
    sides = expr_text(rule.lhs, Style.PLAIN), expr_text(rule.rhs, Style.PLAIN)
    claim = Claim(ClaimKind.OTHER, f"{' is '.join(sides)}{where}", about=("rule", *sides))
    try:
        outcome = _ask_index(rule, rlimit) if rule.domain is Domain.INDEX else _ask_values(rule, rlimit)
    except (NotInteger, NotValue) as problem:
        return unknown(claim, ENGINE, f"{expr_text(problem.expr, Style.PLAIN)}: {problem.reason}", watch)
    if outcome.answer is Answer.UNSAT:
        if rule.condition != TRUE and _ask_condition(rule, rlimit).answer is Answer.UNSAT:
            return Verdict(Status.VACUOUS, claim, ENGINE, reason="the condition never holds", seconds=watch.seconds())
        return proved(claim, ENGINE, watch)
    if outcome.answer is Answer.UNKNOWN:
        return unknown(claim, ENGINE, outcome.reason or "z3 does not know", watch, *outcome.because)
    return _replayed(rule, outcome.model, claim, watch)


def _ask_condition(rule: Rule, rlimit: int) -> Outcome:
    query = Query()
    if rule.domain is Domain.INDEX:
        query.add(IntEncoder(query).condition(rule.condition))
    else:
        encoder = ValueEncoder()
        condition = encoder.value(rule.condition)
        query.add_text(encoder.script([condition, *(f"(not {trap})" for trap in encoder.traps)]))
    return query.solve(rlimit=rlimit)


def rule_queries(rule: Rule) -> tuple[SmtQuery, ...]:
    """The queries whose `unsat` proves the rule. Raises NotInteger, NotValue for a rule without an encoding."""
    if rule.domain is Domain.INDEX:
        query = Query()
        writer = Writer(query)
        question = _index_query(rule, query, writer)
        if len(writer.divisors) > _EASY_QUOTIENTS:
            question = _index_query(rule, plain := Query(), IntEncoder(plain))
        return (written(question, ENGINE),)
    scripts = [_value_script(rule, traps=traps) for traps in (True, False)]
    return tuple(SmtQuery(text, logic, engine=ENGINE) for text, logic in scripts)


def _ask_index(rule: Rule, rlimit: int) -> Outcome:
    """Ask with a small budget from some seeds, then with a large one: products may send the search astray."""

    def asked(seed: int, units: int) -> Outcome:
        query = Query()
        return _index_query(rule, query, IntEncoder(query)).solve(rlimit=units, seed=seed)

    *first, last = _SEEDS
    short = (asked(seed, rlimit // len(_SEEDS)) for seed in first)
    return next((outcome for outcome in short if outcome.answer is not Answer.UNKNOWN), None) or asked(last, rlimit)


def _index_query(rule: Rule, query: Query, encoder: IntEncoder) -> Query:
    side = encoder.condition if rule.lhs.dtype.is_bool else encoder.integer
    condition = encoder.condition(rule.condition)
    lhs, rhs = side(rule.lhs), side(rule.rhs)
    query.add(condition, query.z3.Or(lhs != rhs, *(divisor == 0 for divisor in encoder.divisors)))
    return query


def _ask_values(rule: Rule, rlimit: int) -> Outcome:
    """Two questions, the cheap one first: whether a side can trap, and whether the sides can differ otherwise."""
    outcome = _ask_value_question(rule, rlimit, traps=True)
    return outcome if outcome.answer is not Answer.UNSAT else _ask_value_question(rule, rlimit, traps=False)


def _ask_value_question(rule: Rule, rlimit: int, *, traps: bool) -> Outcome:
    query = Query()
    query.add_text(_value_script(rule, traps=traps)[0])
    return query.solve(rlimit=rlimit)


def _value_script(rule: Rule, *, traps: bool) -> tuple[str, str]:
    """The text of a question about values, and its logic."""
    encoder = ValueEncoder()
    condition = encoder.value(rule.condition)
    # A condition that traps holds nowhere.
    guards = [f"(not {trap})" for trap in encoder.traps]
    encoder.traps.clear()
    lhs, rhs = encoder.value(rule.lhs), encoder.value(rule.rhs)
    goal = disjunction(encoder.traps) if traps else f"(not {same_value(lhs, rhs)})"
    return encoder.script([condition, *guards, goal]), encoder.logic


def _replayed(rule: Rule, model: Mapping[str, int], claim: Claim, watch: Stopwatch) -> Verdict:
    names = {v: model_name(v) if rule.domain is Domain.VALUE else v.name for v in rule.variables}
    values = {v.name: _number(model.get(names[v], 0), v.dtype, rule.domain) for v in rule.variables}
    holds, lhs, rhs = (_evaluated(part, values, rule.domain) for part in (rule.condition, rule.lhs, rule.rhs))
    differ = isinstance(lhs, str) or isinstance(rhs, str) or not _same(lhs, rhs)
    if holds is not True or not differ:
        return unknown(claim, ENGINE, "the counterexample that was found does not replay", watch)
    integers = {n: v for n, v in values.items() if isinstance(v, int)}
    text = f"at {values_text(integers) if rule.domain is Domain.INDEX else values}"
    counterexample = {"values": {n: _json(v) for n, v in values.items()}, "lhs": _json(lhs), "rhs": _json(rhs)}
    return refuted(claim, ENGINE, counterexample, f"{lhs} is not {rhs} {text}", watch)


def _number(bits: int, dtype: DType, domain: Domain) -> Number:
    """The value that a model gives a variable: an integer as it is, or the number with these bits."""
    if dtype.is_bool:
        return bool(bits)
    if domain is Domain.INDEX:
        return bits
    raw = np.array([bits], dtype=f"uint{dtype.bits}").view(numpy_dtype(dtype))
    return float(raw[0]) if dtype.is_float else int(raw[0])


def _evaluated(expr: Expr, values: Mapping[str, Number], domain: Domain) -> Number | str:
    """The value of an expression, or the message of its trap."""
    try:
        if domain is Domain.INDEX:
            result = evaluate(expr, values)
            return bool(result) if expr.dtype.is_bool else int(result)
        return value_of(expr, values)
    except Trap as trap:
        return str(trap)


def value_of(expr: Expr, values: Mapping[str, Number]) -> Number:
    """The interpreter's value of a scalar expression whose variables are loaded. Raises Trap."""
    loads: dict[Var, Expr] = {}
    buffers: list[Buffer] = []
    arrays: list[NDArray[Any]] = []
    for node in free_variables(expr):
        buffer = make_buffer(f"{node.name}_in", (1,), node.dtype)
        buffers.append(buffer)
        arrays.append(np.array([values[node.name]]).astype(numpy_dtype(node.dtype)))
        loads[node] = BufferLoad(buffer, (const(0),))
    out = make_buffer("out", (1,), expr.dtype)
    params = tuple(Var(f"{b.name}_handle", HANDLE) for b in (*buffers, out))
    body = BufferStore(out, (const(0),), substitute(expr, loads))
    function = PrimFunc("main", params, tuple(zip(params, (*buffers, out), strict=True)), body, Attributes())
    try:
        result = run(function, [*arrays, None], plain=True).arrays["out"][0]
    except Fault as fault:
        if fault.kind is not FaultKind.TRAP:
            raise
        raise Trap(fault.message) from fault
    return bool(result) if expr.dtype.is_bool else float(result) if expr.dtype.is_float else int(result)


def _same(a: Number, b: Number) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (a != a and b != b) or (a == b and np.signbit(a) == np.signbit(b))
    return a == b


def _json(value: Number | str) -> object:
    if isinstance(value, float):
        return value.hex() if np.isfinite(value) else str(value)
    return value
