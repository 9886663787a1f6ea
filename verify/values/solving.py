"""One question under one set of fast-math assumptions put to the solvers of a budget, as it stands or, where all
assumptions hold, in exact real arithmetic. What they answer is checked: a model counts only when it was run. Part of
the trust base.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from layoutproof.ir.dtype import BFLOAT16
from layoutproof.ir.expr import Binary, Cast, Compare, Expr, IfThenElseExpr, IntImm, Logical, Not, Select, Var
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.operators import COMPARISONS, BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import nodes_of, walk
from layoutproof.verify.program.questions import Because, SmtQuery
from layoutproof.verify.settings import scaled
from layoutproof.verify.smt.encode_values import NotValue, ValueEncoder, symbol
from layoutproof.verify.smt.solver import Answer, Worker, WorkerAnswer, shared_worker
from layoutproof.verify.values.fast_math import ALL, FastMathSet, names_of
from layoutproof.verify.values.formula import Claim, Formula, choices_are_complete, values_of
from layoutproof.verify.values.knowledge import INFINITE, NAN, Knowledge, always_evaluated, is_widening
from layoutproof.verify.values.numbers import Mask
from layoutproof.verify.values.question import Question
from layoutproof.verify.values.terms import constant_value
from layoutproof.verify.verdict.verdict import Status

# How often bitwuzla asks whether to stop, in z3's units of work: about equal times on float queries.
POLL = 500


@dataclass(frozen=True, slots=True)
class ValueBudget:
    """`rlimit` bounds one query to z3, in z3's own units of work; `polls` one to bitwuzla, by how often it asks whether
    to go on. Both are a part of a second.

    A question asks no solver any more once it spent `question` units (z3's; a poll counts as `POLL`), and a check once
    its questions spent `check`: what is left gets what can be said without solvers. `seconds` is the wall-clock limit
    of one query, a safety net far above what the units allow. `trials` is the number of points tried before a solver is
    asked; `solvers` which are asked, in order, among those that are installed.
    """

    rlimit: int = 2_500_000
    polls: int = 1_000
    question: int = 3_000_000
    check: int = 6_000_000
    trials: int = 600
    seconds: float = 30.0
    solvers: tuple[str, ...] = ("bitwuzla", "z3")

    def units_of(self, engine: str) -> int:
        """The limit of one query, in the engine's own units."""
        return self.polls if engine == "bitwuzla" else self.rlimit

    def cost_of(self, engine: str, units: int) -> int:
        """An engine's own units as z3's."""
        return units * POLL if engine == "bitwuzla" else units


DEFAULT = ValueBudget()
QUICK = ValueBudget(rlimit=600_000, polls=300, question=700_000, check=2_000_000)
"""For questions of which many are asked and most do not matter."""


BFLOAT16_SORT = ValueEncoder().sort(BFLOAT16)


@dataclass(frozen=True, slots=True)
class Decision:
    """What solvers made of a question under one set of fast-math assumptions. `claim` is the refuting point,
    evaluated.
    """

    status: Status
    engine: str
    query: SmtQuery | None = None
    reason: str | None = None
    claim: Claim | None = None
    axioms: tuple[str, ...] = ()
    because: frozenset[Because] = frozenset()


class Solving:
    """Solvers in a worker process, with the budget of one question. `spent` is what its queries did, in z3's units.

    With `closed` no solver is asked; engines of `hung` are not either: one that did not answer before is not waited for
    again.
    """

    def __init__(
        self,
        budget: ValueBudget,
        worker: Worker | None = None,
        *,
        closed: bool = False,
        hung: Container[str] = frozenset(),
    ) -> None:
        self.budget = budget
        self.worker = shared_worker() if worker is None else worker
        self.closed = closed
        self.hung = set[str]()
        self.spent = 0
        self._avoided = hung

    def ask(self, engine: str, text: str, logic: str) -> WorkerAnswer:
        """One query to one engine, if the budget has room for it."""
        if self.closed:
            return WorkerAnswer(Answer.UNKNOWN, reason="the budget of this check is spent", stopped=True)
        if engine in self._avoided or engine in self.hung:
            return WorkerAnswer(Answer.UNKNOWN, reason=f"wall: {engine} gave no answer before", wall=True)
        if self.spent >= scaled(self.budget.question):
            return WorkerAnswer(Answer.UNKNOWN, reason="the budget of this question is spent", stopped=True)
        said = self.worker.ask(
            engine, text, logic, units=scaled(self.budget.units_of(engine)), seconds=self.budget.seconds
        )
        self.spent += self.budget.cost_of(engine, said.spent)
        if said.hung:
            self.hung.add(engine)
        return said

    def decide(self, question: Question, fast_math: FastMathSet) -> Decision:
        """Proved, refuted or unknown."""
        try:
            formula = Formula(question, fast_math)
        except NotValue as problem:
            return Decision(
                Status.UNKNOWN, "encoder", reason=f"{expr_text(problem.expr, Style.PLAIN)}: {problem.reason}"
            )
        text, logic = formula.text(describe(question, fast_math)), formula.encoder.logic
        because, reasons = set[Because](), list[str]()
        for engine in self.budget.solvers:
            if engine == "bitwuzla" and BFLOAT16_SORT in text:
                continue  # it refuses the format
            said = self.ask(engine, text, logic)
            if said.missing:
                continue
            because |= {mark for mark, held in ((Because.CLOCK, said.wall), (Because.BUDGET, said.stopped)) if held}
            if said.answer is Answer.UNSAT:
                query = SmtQuery(text, logic, engine=engine)
                return Decision(Status.PROVED, engine, query, axioms=formula.axioms, because=frozenset(because))
            if said.answer is Answer.SAT:
                if not choices_are_complete(question, fast_math):
                    reasons.append("too many operations of the old value may choose a zero's sign")
                    break
                claim = Claim(question, values_of(question, said.model), 1)
                if claim.fails(fast_math)[0]:
                    return Decision(
                        Status.REFUTED,
                        engine,
                        SmtQuery(text, logic, "sat", engine),
                        claim=claim,
                        because=frozenset(because),
                    )
                reasons.append(f"the case that {engine} gives does not replay{_because(formula)}")
                break
            reasons.append(said.reason if said.reason is not None else f"{engine} does not know")
        return Decision(
            Status.UNKNOWN, "solvers", reason="; ".join(reasons) or "no solver was asked", because=frozenset(because)
        )


def _because(formula: Formula) -> str:
    functions = sorted(formula.encoder.uninterpreted)
    return f": nothing else is known of {', '.join(functions)}" if functions else ""


def describe(question: Question, fast_math: FastMathSet) -> str:
    """The claim in words, for the head of a query."""
    new, old = (expr_text(e, Style.PLAIN) for e in (question.new, question.old))
    what = f"{new} is {old}" if question.goal is None else f"{new} {question.goal}"
    lines = [
        what,
        *(f"where {g}" for g in question.given),
        *(f"where {expr_text(c, Style.PLAIN)}" for c in question.conditions),
    ]
    if fast_math:
        who = sorted(v.name for v in question.computed) + (
            ["what the old side computes"] if question.old_is_computed else []
        )
        lines.append(f"under {' '.join(names_of(fast_math))} of {', '.join(who) or 'nothing'}")
    lines += [f"{variant.name} is {var.name} up to the sign of zero" for var, variant in question.variants]
    return "\n".join(lines)


_LOGIC = "QF_NRA"


class _NotReal(Exception):
    """An expression of which real arithmetic says nothing."""


class _NoNumber(_NotReal):
    """An infinity, a NaN, or a quotient by 0: no real number."""


def equal_as_reals(question: Question, solving: Solving) -> SmtQuery | None:
    """The query that proves the sides equal as real numbers, or None."""
    if question.goal is not None or not question.new.dtype.is_float or not _inputs_are_finite(question):
        return None
    writer = _Writer()
    try:
        new, old = writer.term(question.new), writer.term(question.old)
    except _NotReal:
        return None
    variables = sorted({n for e in (question.new, question.old) for n in nodes_of(e, Var)}, key=lambda v: v.name)
    lines = [f"; {line}" for line in (*describe(question, ALL).splitlines(), "as exact reals")]
    lines += [
        f"(set-logic {_LOGIC})",
        *(f"(declare-const {symbol(v)} {'Bool' if v.dtype.is_bool else 'Real'})" for v in variables),
    ]
    # What the old program divides by is not 0, as its results are finite; what only the new one divides by, or the old
    # one only sometimes, must be shown not to be.
    old_divisors = (
        list(dict.fromkeys(writer.term(d) for d in _divisors(question.old))) if question.old_is_computed else []
    )
    lines += [f"(assert (not (= {d} 0.0)))" for d in old_divisors]
    wrong = [
        f"(not (= {new} {old}))",
        *(f"(= {d} 0.0)" for d in writer.divisors_of(question.new) if d not in old_divisors),
    ]
    lines += [f"(assert (or {' '.join(wrong)}))" if len(wrong) > 1 else f"(assert {wrong[0]})", "(check-sat)", ""]
    text = "\n".join(lines)
    said = solving.ask("z3", text, _LOGIC)
    return SmtQuery(text, _LOGIC) if said.answer is Answer.UNSAT else None


def _divisors(expr: Expr) -> Iterator[Expr]:
    """What is divided by whenever the expression is evaluated."""
    for part in always_evaluated(expr):
        if isinstance(part, Binary) and part.op is BinaryOp.DIV:
            yield part.rhs


def _inputs_are_finite(question: Question) -> bool:
    knowledge = Knowledge(question, ALL)
    return all(
        not knowledge.known(node).kinds & (NAN | INFINITE)
        for side in (question.new, question.old)
        for node in walk(side)
        if isinstance(node, Var) and node.dtype.is_float
    )


_INFIX = {BinaryOp.ADD: "+", BinaryOp.SUB: "-", BinaryOp.MUL: "*", BinaryOp.DIV: "/"}
_ORDER = {CompareOp.LT: "<", CompareOp.LE: "<=", CompareOp.GT: ">", CompareOp.GE: ">=", CompareOp.EQ: "="}


@dataclass
class _Writer:
    """Expressions as SMT-LIB reals."""

    divided: list[str] = field(default_factory=list)

    def divisors_of(self, expr: Expr) -> list[str]:
        """The terms that an expression divides by."""
        self.divided = []
        self.term(expr)
        return self.divided

    def term(self, expr: Expr) -> str:
        """The term of an expression. Raises _NotReal."""
        value = constant_value(expr)
        if value is not None and expr.dtype.is_float:
            return _number(value)
        match expr:
            case Var() if expr.dtype.is_float or expr.dtype.is_bool:
                return symbol(expr)
            case Select(condition=c, then=a, otherwise=b) | IfThenElseExpr(condition=c, then=a, otherwise=b):
                return f"(ite {self.term(c)} {self.term(a)} {self.term(b)})"
            case _:
                return self._real(expr) if expr.dtype.is_float else self._truth(expr)

    def _real(self, expr: Expr) -> str:
        match expr:
            case Binary(op=op, lhs=a, rhs=b) if op in _INFIX:
                x, y = self.term(a), self.term(b)
                if op is BinaryOp.DIV:
                    self.divided.append(y)
                return f"({_INFIX[op]} {x} {y})"
            case Binary(op=BinaryOp.MIN | BinaryOp.MAX as op, lhs=a, rhs=b):
                x, y = self.term(a), self.term(b)
                return f"(ite ({'<' if op is BinaryOp.MIN else '>'} {x} {y}) {x} {y})"
            case Call(function="abs", arguments=(a,)):
                x = self.term(a)
                return f"(ite (< {x} 0.0) (- {x}) {x})"
            case Cast(dtype=target, value=a) if a.dtype.is_float and is_widening(a.dtype, target):
                return self.term(a)
            case _:
                raise _NotReal

    def _truth(self, expr: Expr) -> str:
        match expr:
            case IntImm(value=truth) if expr.dtype.is_bool:
                return "true" if truth else "false"
            case Compare(op=op, lhs=a, rhs=b) if a.dtype.is_float:
                x, y = self.term(a), self.term(b)
                return f"(not (= {x} {y}))" if op is CompareOp.NE else f"({_ORDER[op]} {x} {y})"
            case Not(operand=a):
                return f"(not {self.term(a)})"
            case Logical(op=op, lhs=a, rhs=b):
                return f"({op.value} {self.term(a)} {self.term(b)})"
            case _:
                raise _NotReal


def _number(value: float | int) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        raise _NotReal
    fraction = Fraction(value)
    size = f"(/ {abs(fraction.numerator)}.0 {fraction.denominator}.0)"
    return f"(- {size})" if fraction < 0 else size


def differ_as_reals(claim: Claim, fails: Mask) -> Mask:
    """The failing points at which the sides differ as real numbers too, or where real arithmetic has no say: a trap, a
    part that is no number and that no fast-math assumption excludes, sides without floats.
    """
    sides = (claim.question.new, claim.question.old)
    if not any(isinstance(node, Expr) and node.dtype.is_float for side in sides for node in walk(side)):
        return fails
    differ = fails & claim.new_traps
    for point in np.flatnonzero(fails)[:50]:
        values = {name: array[point].item() for name, array in claim.values.items()}
        if not all(math.isfinite(value) for value in values.values()):
            # the fast-math assumptions leave this point: it stands in nothing that the old program computes
            differ[point] = True
            continue
        try:
            old = _exact(claim.question.old, values)
        except _NotReal:
            continue
        try:
            differ[point] = _exact(claim.question.new, values) != old
        except _NoNumber:
            differ[point] = True
        except _NotReal:
            continue
    return differ


def _quotient(a: Fraction, b: Fraction) -> Fraction:
    if b == 0:
        raise _NoNumber
    return a / b


_OPERATIONS: Mapping[BinaryOp, Callable[[Fraction, Fraction], Fraction]] = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.SUB: lambda a, b: a - b,
    BinaryOp.MUL: lambda a, b: a * b,
    BinaryOp.DIV: _quotient,
    BinaryOp.MIN: min,
    BinaryOp.MAX: max,
}


def _exact(expr: Expr, values: Mapping[str, float | int | bool]) -> Fraction | bool:
    """The exact value at a point. Raises _NotReal."""
    constant = constant_value(expr)
    if constant is not None:
        return _fraction(constant)
    match expr:
        case Var(name=name):
            return _fraction(values[name])
        case Binary(op=op, lhs=a, rhs=b) if expr.dtype.is_float:
            return _OPERATIONS[op](Fraction(_exact(a, values)), Fraction(_exact(b, values)))
        case Call(function="abs", arguments=(a,)):
            return abs(Fraction(_exact(a, values)))
        case Select(condition=c, then=a, otherwise=b) | IfThenElseExpr(condition=c, then=a, otherwise=b):
            return _exact(a if _exact(c, values) else b, values)
        case Compare(op=op, lhs=a, rhs=b):
            return bool(COMPARISONS[op](_exact(a, values), _exact(b, values)))
        case Not(operand=a):
            return not _exact(a, values)
        case Logical(op=op, lhs=a, rhs=b):
            left, right = bool(_exact(a, values)), bool(_exact(b, values))
            return left and right if op is LogicalOp.AND else left or right
        case Cast(dtype=target, value=a) if a.dtype.is_float and target.is_float and is_widening(a.dtype, target):
            return _exact(a, values)
        case _:
            raise _NotReal


def _fraction(value: float | int | bool) -> Fraction:
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        raise _NoNumber
    return Fraction(value)
