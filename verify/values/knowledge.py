"""What is known of the expressions of a question without solving, under a set of fast-math assumptions: which of the
seven kinds of float a value may be, and bounds on it. The kinds of a result follow from those of the operands by
`class_tables.json`. Part of the trust base.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Binary, Cast, Compare, Expr, IfThenElseExpr, Logical, Select, Var
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.semantics import float_format, max_finite, round_float
from layoutproof.ir.visit import children, free_variables
from layoutproof.verify.values.fast_math import FastMath, FastMathSet
from layoutproof.verify.values.question import (
    AtLeast,
    AtMost,
    Given,
    Holds,
    Identical,
    NotInfinite,
    NotNan,
    NotNegativeZero,
    Question,
    condition_on,
)
from layoutproof.verify.values.terms import PASSED_ON, Number, constant_value

NAN, NEG_INF, NEG, NEG_ZERO, POS_ZERO, POS, POS_INF = (1 << k for k in range(7))
KINDS = (NAN, NEG_INF, NEG, NEG_ZERO, POS_ZERO, POS, POS_INF)
KIND_NAMES: Mapping[int, str] = dict(
    zip(KINDS, ("nan", "-inf", "negative", "-0.0", "+0.0", "positive", "inf"), strict=True)
)
ANY = sum(KINDS)
ZERO = NEG_ZERO | POS_ZERO
INFINITE = NEG_INF | POS_INF
FINITE = NEG | ZERO | POS

_TABLES = "class_tables.json"


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a value: `kinds` for a float (0 for other types), and bounds on it where it is a number."""

    kinds: int
    low: Number
    high: Number

    def restricted(self, kinds: int, low: Number = -math.inf, high: Number = math.inf) -> Known:
        """With more known: the kinds and bounds of both."""
        return settled(self.kinds & kinds, max(self.low, low), min(self.high, high))

    def joined(self, other: Known) -> Known:
        """What is known of a value that is one of two."""
        return Known(self.kinds | other.kinds, min(self.low, other.low), max(self.high, other.high))


def settled(kinds: int, low: Number, high: Number) -> Known:
    """Kinds without those that the bounds exclude. A zero of either sign is neither below nor above the other."""
    if low > -math.inf:
        kinds &= ~NEG_INF
    if high < math.inf:
        kinds &= ~POS_INF
    if low >= 0:
        kinds &= ~(NEG | NEG_INF)
    if high <= 0:
        kinds &= ~(POS | POS_INF)
    if low > 0 or high < 0:
        kinds &= ~ZERO
    return Known(kinds, low, high)


def anything(dtype: DType) -> Known:
    """Nothing is known."""
    if dtype.is_float:
        return Known(ANY, -math.inf, math.inf)
    if dtype.is_integer or dtype.is_bool:
        return Known(0, dtype.min_int, dtype.max_int)
    return Known(0, -math.inf, math.inf)


def known_literal(value: Number, dtype: DType) -> Known:
    """All is known."""
    if not dtype.is_float:
        return Known(0, value, value)
    if value != value:
        return Known(NAN, -math.inf, math.inf)
    return Known(kind_of(float(value)), value, value)


def kind_of(value: float) -> int:
    """The kind of one float."""
    if value != value:
        return NAN
    negative = math.copysign(1.0, value) < 0
    if value == 0.0:
        return NEG_ZERO if negative else POS_ZERO
    if math.isinf(value):
        return NEG_INF if negative else POS_INF
    return NEG if negative else POS


def of_kinds(kinds: int, dtype: DType) -> Known:
    """Kinds, with the bounds that they give."""
    low = -math.inf if kinds & NEG_INF else -max_finite(dtype) if kinds & NEG else 0.0
    high = math.inf if kinds & POS_INF else max_finite(dtype) if kinds & POS else 0.0
    return Known(kinds, low, high)


@cache
def _tables() -> Mapping[str, list[int]]:
    found: Mapping[str, list[int]] = json.loads(
        resources.files(__package__).joinpath(_TABLES).read_text(encoding="utf-8")
    )
    return found


@cache
def kinds_after(operation: str, *operands: int) -> int | None:
    """The kinds of a result by the kinds of one or two operands; None for an operation without a table."""
    table = _tables().get(operation)
    if table is None:
        return None
    result = 0
    for row, first in enumerate(KINDS):
        if not operands[0] & first:
            continue
        if len(operands) == 1:
            result |= table[row]
            continue
        for column, second in enumerate(KINDS):
            if operands[1] & second:
                result |= table[row * len(KINDS) + column]
    return result


def tabled_operations() -> Mapping[str, list[int]]:
    """Every table: for one operand 7 sets of kinds, for two 49, the first operand's kind first."""
    return _tables()


_LINEAR = {BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL}
_NAN_PASSES = {*_LINEAR, BinaryOp.DIV}


class Knowledge:
    """Known facts of the variables of a question, and what follows for expressions over them."""

    def __init__(self, question: Question, fast_math: FastMathSet) -> None:
        self._facts: dict[Expr, Known] = {}
        self._cache: dict[Expr, Known] = {}
        for given in question.given:
            self._learn_given(given)
        for condition in question.conditions:
            self._learn_condition(condition)
        self._learn_fast_math(question, fast_math)

    def known(self, expr: Expr) -> Known:
        """What is known of a scalar expression's value."""
        found = self._cache.get(expr)
        if found is None:
            found = self._derived(expr)
            fact = self._facts.get(expr)
            if fact is not None:
                found = found.restricted(fact.kinds, fact.low, fact.high)
            self._cache[expr] = found
        return found

    # Hypotheses

    def _restrict(self, expr: Expr, kinds: int = ANY, low: float = -math.inf, high: float = math.inf) -> None:
        before = self._facts.get(expr, anything(expr.dtype))
        self._facts[expr] = before.restricted(kinds, low, high)
        self._cache.clear()

    def _learn_given(self, given: Given) -> None:
        match given.property:
            case NotNan():
                self._restrict(given.var, ANY & ~NAN)
            case NotInfinite():
                self._restrict(given.var, ANY & ~INFINITE)
            case NotNegativeZero():
                self._restrict(given.var, ANY & ~NEG_ZERO)
            case AtLeast(bound):
                # with a NaN for a bound, nothing is below it
                self._restrict(given.var, low=_bound(bound, -math.inf))
            case AtMost(bound):
                self._restrict(given.var, high=_bound(bound, math.inf))
            case Identical(other):
                value = constant_value(other)
                if value is not None:
                    exact = known_literal(value, given.var.dtype)
                    self._restrict(given.var, exact.kinds if given.var.dtype.is_float else ANY, exact.low, exact.high)
            case Holds() as holds:
                self._learn_condition(condition_on(holds, given.var))

    def _learn_condition(self, condition: Expr) -> None:
        match condition:
            case Logical(op=LogicalOp.AND, lhs=a, rhs=b):
                self._learn_condition(a)
                self._learn_condition(b)
            case Compare(op=CompareOp.GT | CompareOp.GE as op, lhs=a, rhs=b):
                self._learn_order(b, a, strict=op is CompareOp.GT)
            case Compare(op=CompareOp.LT | CompareOp.LE as op, lhs=a, rhs=b):
                self._learn_order(a, b, strict=op is CompareOp.LT)
            case Compare(op=CompareOp.EQ, lhs=a, rhs=b):
                if a == b:
                    # IEEE's way to say that it is not NaN
                    self._restrict(a, ANY & ~NAN)
                else:
                    self._learn_order(a, b, strict=False)
                    self._learn_order(b, a, strict=False)
            case _:
                pass

    def _learn_order(self, small: Expr, large: Expr, *, strict: bool) -> None:
        """A true comparison: neither side is NaN, and a literal bounds the other side, or the operand of `abs`."""
        for expr, bound, is_upper in ((small, large, True), (large, small, False)):
            value = constant_value(bound)
            if not expr.dtype.is_float:
                if value is not None:
                    self._restrict(expr, high=value - strict) if is_upper else self._restrict(expr, low=value + strict)
                continue
            self._restrict(expr, ANY & ~NAN)
            if value is None or value != value:
                continue
            # other strict bounds are kept as if they were not strict
            kinds = ANY & ~_strict_kinds(value, strict)
            self._restrict(expr, kinds, high=value) if is_upper else self._restrict(expr, kinds, low=value)
            if is_upper and isinstance(expr, Call) and expr.function == "abs":
                inner = expr.arguments[0]
                kinds = ANY & ~NAN & ~(INFINITE if value < math.inf or strict else 0)
                self._restrict(inner, kinds, low=-value, high=value)

    def _learn_fast_math(self, question: Question, fast_math: FastMathSet) -> None:
        barred = (NAN if FastMath.NNAN in fast_math else 0) | (INFINITE if FastMath.NINF in fast_math else 0)
        if not barred:
            return
        for var in always_computed(question):
            if var.dtype.is_float:
                self._restrict(var, ANY & ~barred)
        if not question.old_is_computed:
            return
        for part in always_evaluated(question.old):
            if part.dtype.is_float and not isinstance(part, PASSED_ON):
                self._restrict(part, ANY & ~barred)
                for operand in _operands_passed_on(part, fast_math):
                    # a NaN, or an infinity where a NaN is barred as well, would have shown in the result
                    self._restrict(operand, ANY & ~barred)

    # Expressions

    def _derived(self, expr: Expr) -> Known:
        value = constant_value(expr)
        if value is not None:
            return known_literal(value, expr.dtype)
        match expr:
            case Binary() if expr.dtype.is_float:
                return self._float_binary(expr)
            case Binary(op=BinaryOp.MIN | BinaryOp.MAX) if expr.dtype.is_integer:
                return self._integer_extreme(expr)
            case Select(then=a, otherwise=b) | IfThenElseExpr(then=a, otherwise=b):
                return self.known(a).joined(self.known(b))
            case Cast():
                return self._cast(expr)
            case Call() if expr.dtype.is_float:
                return self._call(expr)
            case _:
                return anything(expr.dtype)

    def _float_binary(self, expr: Binary) -> Known:
        a, b = self.known(expr.lhs), self.known(expr.rhs)
        kinds = kinds_after(expr.op.value, a.kinds, b.kinds)
        if kinds is None:
            return anything(expr.dtype)
        found = of_kinds(kinds, expr.dtype)
        # a NaN on the left gives the right side, on the right the right side as well
        left_is_number = not a.kinds & NAN
        match expr.op:
            case BinaryOp.MAX:
                low = max(a.low, b.low) if left_is_number else b.low
                return found.restricted(kinds, low, max(a.high, b.high))
            case BinaryOp.MIN:
                high = min(a.high, b.high) if left_is_number else b.high
                return found.restricted(kinds, min(a.low, b.low), high)
            case _:
                return found

    def _integer_extreme(self, expr: Binary) -> Known:
        a, b = self.known(expr.lhs), self.known(expr.rhs)
        pick = max if expr.op is BinaryOp.MAX else min
        return Known(0, pick(a.low, b.low), pick(a.high, b.high))

    def _cast(self, expr: Cast) -> Known:
        source, target, value = expr.value.dtype, expr.dtype, self.known(expr.value)
        if not (source.is_float and target.is_float):
            if source.is_integer and target.is_float:
                return of_kinds(_integer_kinds(value), target)
            return anything(target)
        if is_widening(source, target):
            return value
        kinds = kinds_after("narrow", value.kinds)
        assert kinds is not None
        return of_kinds(kinds, target).restricted(
            kinds, round_float(value.low, target), round_float(value.high, target)
        )

    def _call(self, expr: Call) -> Known:
        operands = [self.known(a) for a in expr.arguments]
        if expr.function == "fma":
            # Only where the product is exactly zero: it is rounded together with the sum.
            product = kinds_after("*", operands[0].kinds, operands[1].kinds)
            has_zero = all(not o.kinds & ~ZERO for o in operands[:2]) or _is_zero_times_finite(operands[0], operands[1])
            kinds = kinds_after("+", product, operands[2].kinds) if product is not None and has_zero else None
        else:
            kinds = kinds_after(expr.function, *(o.kinds for o in operands)) if len(operands) <= 2 else None
        return anything(expr.dtype) if kinds is None else of_kinds(kinds, expr.dtype)


def _is_zero_times_finite(a: Known, b: Known) -> bool:
    """Whether one operand is a zero and the other finite: then the product is a zero, exactly."""
    return any(not x.kinds & ~ZERO and not y.kinds & (NAN | INFINITE) for x, y in ((a, b), (b, a)))


def always_evaluated(expr: Expr) -> Iterator[Expr]:
    """The parts of an expression that are evaluated whenever it is."""
    stack: list[Node] = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, Expr):
            yield node
        match node:
            case IfThenElseExpr(condition=condition):
                stack.append(condition)
            case Logical(lhs=left):
                stack.append(left)
            case _:
                stack.extend(children(node))


def always_computed(question: Question) -> frozenset[Var]:
    """The variables that fast-math assumptions restrict whatever happens: not those that the old side evaluates only
    sometimes.
    """
    if not question.old_is_computed:
        return question.computed
    always = set(always_evaluated(question.old))
    return frozenset(v for v in question.computed if v in always or v not in free_variables(question.old))


def is_widening(source: DType, target: DType) -> bool:
    """Whether every number of one float type is one of another."""
    (p, low, high), (q, lower, higher) = float_format(source), float_format(target)
    return p <= q and lower - q <= low - p and high <= higher


def _operands_passed_on(expr: Expr, fast_math: FastMathSet) -> tuple[Expr, ...]:
    """The operands of which a fast-math assumption on the result says the same."""
    if FastMath.NNAN not in fast_math or not isinstance(expr, Binary):
        return ()
    allowed = _LINEAR if FastMath.NINF in fast_math else _NAN_PASSES
    return (expr.lhs, expr.rhs) if expr.op in allowed else ()


def _bound(expr: Expr, otherwise: float) -> float:
    value = constant_value(expr)
    return otherwise if value is None or value != value else value


def _strict_kinds(value: float, strict: bool) -> int:
    """The kinds that a strict bound excludes besides what the bound does."""
    if not strict:
        return 0
    return ZERO if value == 0.0 else kind_of(value) & INFINITE


def _integer_kinds(value: Known) -> int:
    kinds = 0
    if value.low < 0:
        kinds |= NEG | NEG_INF
    if value.high > 0:
        kinds |= POS | POS_INF
    return kinds | (POS_ZERO if value.low <= 0 <= value.high else 0)
