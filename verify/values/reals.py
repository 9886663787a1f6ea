"""Exact real arithmetic, which only all four licences together allow: floats as the numbers they are, operations without rounding.

Only claims over `+ - * /`, `min`, `max`, `abs`, negation, choices and comparisons are looked at, and only where every float that goes in
is known to be finite: the old program computes it (`nnan ninf` say so), or would have shown it in a result that it computes, or a
fact says so. Nothing is assumed of what only the new program has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from layoutproof.ir.evaluate import COMPARISONS
from layoutproof.ir.expr import (
    Binary,
    BinaryOp,
    Cast,
    Compare,
    CompareOp,
    Expr,
    FloatImm,
    IfThenElseExpr,
    IntImm,
    Logical,
    LogicalOp,
    Not,
    Select,
    Var,
)
from layoutproof.ir.intrinsics import Call, Limit
from layoutproof.ir.visit import walk
from layoutproof.verify.smt.encode_values import symbol
from layoutproof.verify.smt.query import SmtQuery
from layoutproof.verify.smt.session import Answer
from layoutproof.verify.values.claims import Claim
from layoutproof.verify.values.classes import INFINITE, NAN
from layoutproof.verify.values.knowledge import Knowledge, always_evaluated, is_widening
from layoutproof.verify.values.licences import ALL
from layoutproof.verify.values.numbers import Mask
from layoutproof.verify.values.question import Question
from layoutproof.verify.values.solving import Solving, describe
from layoutproof.verify.values.terms import constant_value

_LOGIC = "QF_NRA"


class _NotReal(Exception):
    """An expression of which real arithmetic says nothing."""


class _NoNumber(_NotReal):
    """An infinity, a NaN, or a quotient by 0: no real number."""


@dataclass(frozen=True, slots=True)
class RealProof:
    """That both sides are equal as exact reals."""

    query: SmtQuery


def equal_as_reals(question: Question, solving: Solving) -> RealProof | None:
    """The proof that the sides are equal as real numbers, or None."""
    if question.goal is not None or not question.new.dtype.is_float or not _inputs_are_finite(question):
        return None
    writer = _Writer()
    try:
        new, old = writer.term(question.new), writer.term(question.old)
    except _NotReal:
        return None
    variables = sorted({n for e in (question.new, question.old) for n in walk(e) if isinstance(n, Var)}, key=lambda v: v.name)
    lines = [f"; {line}" for line in (*describe(question, ALL).splitlines(), "as exact reals")]
    lines += [f"(set-logic {_LOGIC})", *(f"(declare-const {symbol(v)} {'Bool' if v.dtype.is_bool else 'Real'})" for v in variables)]
    # What the old program divides by is not 0, as its results are finite; what only the new one divides by, or the old one only
    # sometimes, must be shown not to be.
    old_divisors = list(dict.fromkeys(writer.term(d) for d in _divisors(question.old))) if question.old_is_computed else []
    lines += [f"(assert (not (= {d} 0.0)))" for d in old_divisors]
    wrong = [f"(not (= {new} {old}))", *(f"(= {d} 0.0)" for d in writer.divisors_of(question.new) if d not in old_divisors)]
    lines += [f"(assert (or {' '.join(wrong)}))" if len(wrong) > 1 else f"(assert {wrong[0]})", "(check-sat)", ""]
    text = "\n".join(lines)
    said = solving.ask("z3", text, _LOGIC)
    return RealProof(SmtQuery(text, _LOGIC)) if said.answer is Answer.UNSAT else None


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
            case IntImm(value=truth) if expr.dtype.is_bool:
                return "true" if truth else "false"
            case Var() if expr.dtype.is_float or expr.dtype.is_bool:
                return symbol(expr)
            case Binary(op=op, lhs=a, rhs=b) if op in _INFIX and expr.dtype.is_float:
                x, y = self.term(a), self.term(b)
                if op is BinaryOp.DIV:
                    self.divided.append(y)
                return f"({_INFIX[op]} {x} {y})"
            case Binary(op=BinaryOp.MIN | BinaryOp.MAX as op, lhs=a, rhs=b) if expr.dtype.is_float:
                x, y = self.term(a), self.term(b)
                return f"(ite ({'<' if op is BinaryOp.MIN else '>'} {x} {y}) {x} {y})"
            case Call(function="abs", arguments=(a,)) if expr.dtype.is_float:
                x = self.term(a)
                return f"(ite (< {x} 0.0) (- {x}) {x})"
            case Select(condition=c, then=a, otherwise=b) | IfThenElseExpr(condition=c, then=a, otherwise=b):
                return f"(ite {self.term(c)} {self.term(a)} {self.term(b)})"
            case Compare(op=op, lhs=a, rhs=b) if a.dtype.is_float:
                x, y = self.term(a), self.term(b)
                return f"(not (= {x} {y}))" if op is CompareOp.NE else f"({_ORDER[op]} {x} {y})"
            case Not(operand=a):
                return f"(not {self.term(a)})"
            case Logical(op=op, lhs=a, rhs=b):
                return f"({op.value} {self.term(a)} {self.term(b)})"
            case Cast(dtype=target, value=a) if a.dtype.is_float and target.is_float and is_widening(a.dtype, target):
                return self.term(a)
            case _:
                raise _NotReal


def _number(value: float | int) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        raise _NotReal
    fraction = Fraction(value)
    size = f"(/ {abs(fraction.numerator)}.0 {fraction.denominator}.0)"
    return f"(- {size})" if fraction < 0 else size


def differ_as_reals(claim: Claim, fails: Mask) -> Mask:
    """The failing points at which the sides differ as real numbers too, or where real arithmetic has no say: a trap, a part that is no
    number and that no licence excludes, sides without floats.
    """
    sides = (claim.question.new, claim.question.old)
    if not any(isinstance(node, Expr) and node.dtype.is_float for side in sides for node in walk(side)):
        return fails
    differ = fails & claim.new_traps
    for point in np.flatnonzero(fails)[:50]:
        values = {name: array[point].item() for name, array in claim.values.items()}
        if not all(math.isfinite(value) for value in values.values()):
            # the licences leave this point: it stands in nothing that the old program computes
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


_OPERATIONS: Mapping[BinaryOp, Callable[[Fraction, Fraction], Fraction]] = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.SUB: lambda a, b: a - b,
    BinaryOp.MUL: lambda a, b: a * b,
    BinaryOp.MIN: min,
    BinaryOp.MAX: max,
}


def _exact(expr: Expr, values: Mapping[str, float | int | bool]) -> Fraction | bool:
    """The exact value at a point. Raises _NotReal."""
    match expr:
        case Var(name=name):
            return _fraction(values[name])
        case FloatImm(value=value) | IntImm(value=value):
            return _fraction(value)
        case Limit():
            limit = constant_value(expr)
            assert limit is not None
            return _fraction(limit)
        case Binary(op=op, lhs=a, rhs=b) if expr.dtype.is_float:
            x, y = Fraction(_exact(a, values)), Fraction(_exact(b, values))
            if op is BinaryOp.DIV:
                if y == 0:
                    raise _NoNumber
                return x / y
            return _OPERATIONS[op](x, y)
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
