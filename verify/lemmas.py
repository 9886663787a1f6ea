"""Proves rewrite rules: for every value of the variables under which the condition holds, both sides have a value, and the same one.

Index rules are decided over the mathematical integers, value rules over wrapping integers and IEEE floats. A counterexample is run:
index arithmetic by `ir/evaluate.py`, values by the reference interpreter, on loads (which wrap, where plain variables would be index
arithmetic).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutproof.ir.attributes import Attributes
from layoutproof.ir.buffer import Buffer, BufferLoad, make_buffer
from layoutproof.ir.dtype import HANDLE, DType
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import TRUE, Expr, Var, const
from layoutproof.ir.interp import Fault, FaultKind, run
from layoutproof.ir.numpy_types import numpy_dtype
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rule import Domain, Rule
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import BufferStore
from layoutproof.ir.subst import substitute
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import free_variables
from layoutproof.verify.claim import Claim, ClaimKind
from layoutproof.verify.facts import Stopwatch, proved, refuted, unknown, values_text
from layoutproof.verify.smt.claims import Writer, written
from layoutproof.verify.smt.encode_int import IntEncoder, NotInteger
from layoutproof.verify.smt.encode_values import NotValue, ValueEncoder, disjunction, model_name
from layoutproof.verify.smt.encode_values import same as same_value
from layoutproof.verify.smt.query import SmtQuery
from layoutproof.verify.smt.session import Answer, Outcome, Query
from layoutproof.verify.verdict import Status, Verdict

RLIMIT = 20_000_000
ENGINE = "z3"
# With more quotients than this, none of them is decided better as a number with an equation than as what solvers call `div`.
_EASY_QUOTIENTS = 2
_SEEDS = (1, 2, 3, 0)

Number = int | float | bool


def prove_rule(rule: Rule, rlimit: int = RLIMIT) -> Verdict:
    """Whether a rule holds, in its domain. A refutation gives the variables' values and was run."""
    watch = Stopwatch()
    where = f" where {expr_text(rule.condition, Style.PLAIN)}" if rule.condition != TRUE else ""
    claim = Claim(ClaimKind.OTHER, f"{expr_text(rule.lhs, Style.PLAIN)} is {expr_text(rule.rhs, Style.PLAIN)}{where}")
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
    """The questions whose `unsat` is the rule's lemma. Raises NotInteger, NotValue for a rule that cannot be said."""
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
    """Asked shortly from some seeds, then from one as long as may be: whether a search through products goes astray is a matter of luck."""

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
    """Two questions, the cheap one first: whether a side can trap, and whether the sides can differ where they do not."""
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
    text = f"at {values_text({n: v for n, v in values.items() if isinstance(v, int)})}" if rule.domain is Domain.INDEX else f"at {values}"
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
    """The value of an expression, or the words of its trap."""
    try:
        if domain is Domain.INDEX:
            result = evaluate(expr, values)
            return bool(result) if expr.dtype.is_bool else int(result)
        return value_of(expr, values)
    except Trap as trap:
        return str(trap)


def value_of(expr: Expr, values: Mapping[str, Number]) -> Number:
    """What the reference interpreter computes for a scalar expression whose variables are loaded. Raises Trap where it has no result."""
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
    """Value identity."""
    if isinstance(a, float) and isinstance(b, float):
        return (a != a and b != b) or (a == b and np.signbit(a) == np.signbit(b))
    return a == b


def _json(value: Number | str) -> object:
    if isinstance(value, float):
        return value.hex() if np.isfinite(value) else str(value)
    return value
