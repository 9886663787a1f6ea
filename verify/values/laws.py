"""The laws applied: both sides of a question rewritten by proved equalities, so that usual questions need no solver.
Part of the trust base.

What is used is named: the laws of `laws.json`, `arithmetic on literals`, `only one value is possible` (read off the
kinds of `knowledge`), `a cast there and back`, and the exact points of the math functions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Binary, Cast, Compare, Expr, IfThenElseExpr, IntImm, Select, Var
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.ir.visit import map_children, walk
from layoutproof.verify.smt.encode_values import INTERPRETED
from layoutproof.verify.values.common_parts import SignedZeroVariants
from layoutproof.verify.values.fast_math import FastMath, FastMathSet
from layoutproof.verify.values.knowledge import (
    INFINITE,
    NAN,
    NEG_INF,
    NEG_ZERO,
    POS_INF,
    POS_ZERO,
    ZERO,
    Knowledge,
    Known,
    always_evaluated,
    is_widening,
)
from layoutproof.verify.values.law_table import (
    KINDS_OF,
    ONE,
    Law,
    axiom_name,
    known_value,
    laws_for,
    match,
    operation_of,
)
from layoutproof.verify.values.numbers import NotEvaluated, Points
from layoutproof.verify.values.question import (
    AtLeast,
    AtMost,
    Identical,
    NotInfinite,
    NotNan,
    NotNegativeZero,
    Question,
    ValueAnswer,
    operand_of,
)
from layoutproof.verify.values.terms import comparable, constant_value, is_identical, literal, trapping_parts
from layoutproof.verify.verdict.verdict import Status

FOLDED = "arithmetic on literals"
ONLY_VALUE = "only one value is possible"
ROUND_TRIP = "a cast there and back"
KNOWN_CONDITION = "a condition that is known"
ZERO_SIGN = "0.0 or -0.0 added changes at most a zero's sign"
TRANSPARENT = "the signs of zeros that go in change at most the sign of a zero that comes out"
SIGN_LOST = "the signs of zeros that go in change nothing"

_SINGLE = {POS_ZERO: 0.0, NEG_ZERO: -0.0, POS_INF: float("inf"), NEG_INF: float("-inf"), NAN: float("nan")}
_COMMUTES = {BinaryOp.ADD, BinaryOp.MUL}


@dataclass(frozen=True, slots=True)
class Simplified:
    """Both sides of a question, rewritten, and the names of the laws that did it."""

    new: Expr
    old: Expr
    laws: tuple[str, ...]


def simplified(question: Question, fast_math: FastMathSet) -> Simplified | None:
    """Both sides rewritten by laws under the hypotheses; None if the new side might trap in a part that a law drops."""
    if not _traps_as_before(question):
        return None
    knowledge = Knowledge(question, fast_math)
    variants = SignedZeroVariants(question, knowledge)
    law = _by_variants(variants, fast_math, question.new, question.old)
    if law is not None:
        return Simplified(question.old, question.old, (law,))
    rewriter = _Rewriter(knowledge)
    new, old = rewriter.rewrite(question.new), rewriter.rewrite(question.old)
    if FastMath.NSZ in fast_math:
        new = rewriter.without_zeros(new)
    law = _by_variants(variants, fast_math, new, old)
    if law is not None:
        rewriter.used[law] = None
        new = old
    return Simplified(new, old, tuple(rewriter.used))


def _by_variants(variants: SignedZeroVariants, fast_math: FastMathSet, new: Expr, old: Expr) -> str | None:
    """The law by which sides that differ in variants only are the same, or None."""
    if variants.are_identical(new, old):
        return SIGN_LOST
    return TRANSPARENT if FastMath.NSZ in fast_math and variants.are_alike(new, old) else None


def agrees_up_to_zero_signs(question: Question) -> ValueAnswer | None:
    """The proof that both sides are one expression, of which variants change at most the sign of a zero result; None
    for any others. No operation of the old side chooses a sign: it does what IEEE 754 says.
    """
    variants = SignedZeroVariants(question, Knowledge(question, frozenset()))
    if not _traps_as_before(question) or not variants.are_alike(question.new, question.old):
        return None
    return ValueAnswer(Status.PROVED, frozenset({FastMath.NSZ}), laws=(TRANSPARENT,))


def satisfies_by_laws(question: Question, fast_math: FastMathSet) -> tuple[str, ...] | None:
    """The laws by which `new` has the property that is the goal, or None where they do not say."""
    knowledge = Knowledge(question, fast_math)
    known, goal = knowledge.known(question.new), question.goal
    value = None if goal is None or (operand := operand_of(goal)) is None else constant_value(operand)
    match goal:
        case NotNan():
            holds = not known.kinds & NAN
        case NotInfinite():
            holds = not known.kinds & INFINITE
        case NotNegativeZero():
            holds = not known.kinds & NEG_ZERO
        case AtLeast() if value is not None:
            holds = value != value or known.low >= value
        case AtMost() if value is not None:
            holds = value != value or known.high <= value
        case Identical() if value is not None and known.kinds in _SINGLE:
            holds = is_identical(_SINGLE[known.kinds], value)
        case _:
            holds = False
    return (f"kinds of {operation_of(question.new)}",) if holds else None


def _traps_as_before(question: Question) -> bool:
    """Whether every trap of the new side is one that the old side has too, wherever it is evaluated."""
    parts = set(trapping_parts(question.new))
    return not parts or parts <= {comparable(p) for p in always_evaluated(question.old)} | set(
        always_evaluated(question.old)
    )


@dataclass
class _Rewriter:
    """Rewrites expressions bottom-up; each step keeps the value under the hypotheses."""

    knowledge: Knowledge
    used: dict[str, None] = field(default_factory=dict)

    def rewrite(self, expr: Expr) -> Expr:
        """An expression of the same value."""

        def visit(node: Node) -> Node:
            return self.rewrite(node) if isinstance(node, Expr) else node

        known = self.knowledge.known(expr)
        if expr.dtype.is_float and known.kinds in _SINGLE and constant_value(expr) is None:
            self.used[ONLY_VALUE] = None
            return literal(_SINGLE[known.kinds], expr.dtype)
        inner = map_children(expr, visit)
        for _ in range(8):
            step = self._step(inner)
            if step is None:
                break
            inner = step
        return inner

    def _step(self, expr: Expr) -> Expr | None:
        """One rewriting of the root, or None."""
        folded = self._folded(expr)
        if folded is not None:
            return folded
        match expr:
            case (
                Select(condition=IntImm(value=truth), then=a, otherwise=b)
                | IfThenElseExpr(condition=IntImm(value=truth), then=a, otherwise=b)
            ):
                self.used[KNOWN_CONDITION] = None
                return a if truth else b
            case Cast(dtype=outer, value=Cast(dtype=middle, value=inner)) if inner.dtype == outer and _there_and_back(
                inner, middle
            ):
                self.used[ROUND_TRIP] = None
                return inner
            case Cast(dtype=dtype, value=inner) if inner.dtype == dtype:
                return inner
            case Compare():
                return self._known_comparison(expr)
            case _:
                return self._by_table(expr)

    def _folded(self, expr: Expr) -> Expr | None:
        operands = [node for node in walk(expr) if node is not expr]
        if not operands or not all(isinstance(o, Expr) and constant_value(o) is not None for o in operands):
            return None
        if isinstance(expr, Call) and expr.function not in INTERPRETED:
            return self._exact_point(expr)
        value = _computed(expr)
        if value is not None:
            self.used[FOLDED] = None
        return value

    def _exact_point(self, call: Call) -> Expr | None:
        if len(call.arguments) != 1:
            return None
        argument = constant_value(call.arguments[0])
        value = None if argument is None else known_value(call.function, float(argument))
        if value is None:
            return None
        assert argument is not None
        self.used[axiom_name(call.function, float(argument), value)] = None
        return literal(value, call.dtype)

    def _known_comparison(self, expr: Compare) -> Expr | None:
        """A comparison whose outcome the bounds give."""
        a, b = self.knowledge.known(expr.lhs), self.knowledge.known(expr.rhs)
        if (a.kinds | b.kinds) & NAN or expr.lhs.dtype.is_bool:
            return None
        below, above = a.high < b.low, a.low > b.high
        truth: bool | None
        match expr.op:
            case CompareOp.LT:
                truth = True if below else False if a.low >= b.high else None
            case CompareOp.LE:
                truth = True if a.high <= b.low else False if above else None
            case CompareOp.GT:
                truth = True if above else False if a.high <= b.low else None
            case CompareOp.GE:
                truth = True if a.low >= b.high else False if below else None
            case CompareOp.EQ | CompareOp.NE:
                truth = expr.op is CompareOp.NE if below or above else None
        if truth is None:
            return None
        self.used[KNOWN_CONDITION] = None
        return IntImm(int(truth), expr.dtype)

    def _by_table(self, expr: Expr) -> Expr | None:
        for law, pattern in laws_for(expr.dtype, operation_of(expr)):
            for writing in _writings(expr):
                found = match(pattern, writing)
                if found is not None and self._applies(law, found):
                    self.used[law.name] = None
                    return _result(law, expr, found)
        return None

    def _applies(self, law: Law, found: dict[str, Expr]) -> bool:
        for letter, name in law.where:
            if name == ONE:
                if constant_value(found[letter]) != 1.0:
                    return False
            elif self.knowledge.known(found[letter]).kinds & ~KINDS_OF[name]:
                return False
        if law.not_above:
            low, high = (self.knowledge.known(found[letter]) for letter in law.not_above)
            if not low.high <= high.low:
                return False
        return not law.apart or not _both_may_be_zero(*(self.knowledge.known(found[letter]) for letter in law.apart))

    def without_zeros(self, expr: Expr) -> Expr:
        """The root without zeros added or taken away: valid where results are compared up to the sign of zero."""
        match expr:
            case Binary(op=BinaryOp.ADD | BinaryOp.SUB as op, lhs=a, rhs=b) if expr.dtype.is_float:
                for value, other in ((a, b), (b, a)) if op is BinaryOp.ADD else ((a, b),):
                    if not self.knowledge.known(other).kinds & ~ZERO:
                        self.used[ZERO_SIGN] = None
                        return self.without_zeros(value)
            case Call(function="fma", arguments=(a, b, c)):
                product = self.knowledge.known(Binary(BinaryOp.MUL, a, b))
                if not product.kinds & ~ZERO and not (
                    self.knowledge.known(a).kinds & ~ZERO and self.knowledge.known(b).kinds & ~ZERO
                ):
                    self.used[ZERO_SIGN] = None
                    return self.without_zeros(c)
            case _:
                pass
        return expr


def _there_and_back(value: Expr, middle: DType) -> bool:
    return value.dtype.is_float and middle.is_float and is_widening(value.dtype, middle)


def _both_may_be_zero(a: Known, b: Known) -> bool:
    return bool(a.kinds & ZERO) and bool(b.kinds & ZERO) and (a.kinds | b.kinds) & ZERO == ZERO


def _writings(expr: Expr) -> tuple[Expr, ...]:
    """An expression, and for a commutative operation the other order."""
    match expr:
        case Binary(op=op, lhs=a, rhs=b) if op in _COMMUTES or (
            expr.dtype.is_integer and op in (BinaryOp.BITAND, BinaryOp.BITOR, BinaryOp.BITXOR)
        ):
            return expr, Binary(op, b, a)
        case Call(function="fma", arguments=(a, b, c)):
            return expr, Call("fma", (b, a, c))
        case Call(function="maximum" | "minimum" | "fmax" | "fmin" as function, arguments=(a, b)):
            return expr, Call(function, (b, a))
        case _:
            return (expr,)


def _result(law: Law, expr: Expr, found: dict[str, Expr]) -> Expr:
    result = law.right(expr.dtype)
    return found[result.name] if isinstance(result, Var) else result


@lru_cache(maxsize=4096)
def _computed(expr: Expr) -> Expr | None:
    """The literal that an operation on literals gives; None where it traps."""
    points = Points({}, 1)
    try:
        with np.errstate(all="ignore"):
            value = points.value(expr)[0].item()
    except NotEvaluated:
        return None
    return None if points.trapped[0] else literal(value, expr.dtype)
