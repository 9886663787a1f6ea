"""What both sides of a question have in common: sides that differ in nothing but signed zeros, and parts that both
have, replaced by variables. Read off the structure; nothing is ever refuted this way. Part of the trust base.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator
from dataclasses import replace

from layoutproof.ir.expr import Binary, Cast, Compare, Expr, FloatImm, IfThenElseExpr, IntImm, Logical, Not, Select, Var
from layoutproof.ir.intrinsics import Call, Limit
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.visit import children, free_variables, map_children, take_fresh, walk
from layoutproof.verify.values.fast_math import FastMathSet
from layoutproof.verify.values.knowledge import (
    INFINITE,
    NAN,
    NEG,
    NEG_INF,
    NEG_ZERO,
    POS,
    POS_INF,
    POS_ZERO,
    Knowledge,
    Known,
    always_computed,
    always_evaluated,
)
from layoutproof.verify.values.law_table import POINTS, known_value
from layoutproof.verify.values.question import AtLeast, AtMost, Given, NotInfinite, NotNan, NotNegativeZero, Question
from layoutproof.verify.values.terms import can_trap_below, comparable, is_identical, literal

# Of library functions, the exact points say it: f(0.0) and f(-0.0) are known, and alike.
_KEEPS_ZERO_SIGN_APART = {"abs", "sqrt", "fma", "floor", "ceil", "trunc", "round", "fmax", "fmin", "maximum", "minimum"}
_PASSES_ON = _KEEPS_ZERO_SIGN_APART | (POINTS.keys() - {"rsqrt"})


def _loses_sign(function: str) -> bool:
    at_zero = known_value(function, 0.0)
    other = known_value(function, -0.0)
    return at_zero is not None and other is not None and is_identical(at_zero, other)


_LOSES = {"abs", *(function for function in POINTS if _loses_sign(function))}


def without_variants(question: Question, expr: Expr) -> Expr:
    """A new expression with the old program's variables for their variants."""
    back: dict[Expr, Expr] = {variant: var for var, variant in question.variants}
    if not back:
        return expr

    def visit(node: Node) -> Node:
        return back[node] if isinstance(node, Var) and node in back else map_children(node, visit)

    result = visit(expr)
    assert isinstance(result, Expr)
    return result


class SignedZeroVariants:
    """The effect of signed-zero variants on expressions of the new side."""

    def __init__(self, question: Question, knowledge: Knowledge) -> None:
        self._question = question
        self._knowledge = knowledge
        self._variants: Container[Node] = {variant for _, variant in question.variants}
        self._up_to_zero: dict[Expr, bool] = {}
        self._same: dict[Expr, bool] = {}

    def are_alike(self, new: Expr, old: Expr) -> bool:
        """Whether the sides differ only in variants, which change at most the sign of a zero result."""
        return self._is_pair(new, old) and self.changes_zero_signs_only(new)

    def are_identical(self, new: Expr, old: Expr) -> bool:
        """Whether the sides differ only in variants, which change nothing."""
        return self._is_pair(new, old) and self.changes_nothing(new)

    def _is_pair(self, new: Expr, old: Expr) -> bool:
        return bool(self._question.variants) and comparable(without_variants(self._question, new)) == comparable(old)

    def _mentioned(self, expr: Node) -> bool:
        return any(node in self._variants for node in walk(expr))

    def changes_zero_signs_only(self, expr: Expr) -> bool:
        """Whether it has the same value with the old variables, up to the sign of a zero."""
        known = self._up_to_zero.get(expr)
        if known is None:
            known = self._up_to_zero[expr] = (
                not self._mentioned(expr) or self._passes_on(expr) or self.changes_nothing(expr)
            )
        return known

    def _passes_on(self, expr: Expr) -> bool:
        match expr:
            case Var():
                return True
            case Binary(op=BinaryOp.DIV, lhs=a, rhs=b):
                return self.changes_zero_signs_only(a) and self.changes_nothing(b)
            case Select(condition=c, then=a, otherwise=b) | IfThenElseExpr(condition=c, then=a, otherwise=b):
                return self.changes_nothing(c) and self.changes_zero_signs_only(a) and self.changes_zero_signs_only(b)
            case Binary() if expr.dtype.is_float:
                return self._are_all(expr)
            case Cast(value=value) if expr.dtype.is_float and value.dtype.is_float:
                return self.changes_zero_signs_only(value)
            case Call(function=function) if expr.dtype.is_float:
                return function in _PASSES_ON and self._are_all(expr)
            case _:
                return False

    def _are_all(self, expr: Expr) -> bool:
        return all(self.changes_zero_signs_only(part) for part in children(expr) if isinstance(part, Expr))

    def changes_nothing(self, expr: Expr) -> bool:
        """Whether it has the identical value with the old variables, signs of zeros included."""
        known = self._same.get(expr)
        if known is None:
            known = self._same[expr] = (
                not self._mentioned(expr) or self._loses(expr) or self._is_a_function_of_such(expr)
            )
        return known

    def _loses(self, expr: Expr) -> bool:
        match expr:
            case Compare(lhs=a, rhs=b) if a.dtype.is_float:
                # comparisons take both zeros for one
                return self.changes_zero_signs_only(a) and self.changes_zero_signs_only(b)
            case Cast(value=value) if value.dtype.is_float and not expr.dtype.is_float:
                return self.changes_zero_signs_only(value)
            case Call(function=function, arguments=(a,)) if expr.dtype.is_float and function in _LOSES:
                return self.changes_zero_signs_only(a)
            case Binary(op=op, lhs=a, rhs=b) if expr.dtype.is_float:
                return self._is_lost(op, a, b)
            case _:
                return False

    def _is_a_function_of_such(self, expr: Expr) -> bool:
        match expr:
            case Binary() | Compare() | Logical() | Not() | Select() | IfThenElseExpr() | Cast() | Call():
                return all(self.changes_nothing(part) for part in children(expr) if isinstance(part, Expr))
            case IntImm() | FloatImm() | Limit():
                return True
            case _:
                return False

    def _is_lost(self, op: BinaryOp, a: Expr, b: Expr) -> bool:
        """Whether both signs of a zero operand give one result, by what is known of the other operand."""
        if op is BinaryOp.MUL and a == b:
            return self.changes_zero_signs_only(a)
        return any(
            self.changes_zero_signs_only(zero) and self.changes_nothing(other) and not self._kinds(other) & bad
            for zero, other, bad in _losing(op, a, b)
        )

    def _kinds(self, expr: Expr) -> int:
        return self._knowledge.known(without_variants(self._question, expr)).kinds


def _losing(op: BinaryOp, a: Expr, b: Expr) -> tuple[tuple[Expr, Expr, int], ...]:
    """Which operand's zero sign is lost, beside which other operand if that is of none of these kinds."""
    not_positive, not_negative = NEG | NEG_INF | NEG_ZERO | POS_ZERO, POS | POS_INF | NEG_ZERO | POS_ZERO
    match op:
        case BinaryOp.ADD:
            # 0.0 + 0.0 and -0.0 + 0.0 are 0.0
            return (a, b, NEG_ZERO), (b, a, NEG_ZERO)
        case BinaryOp.SUB:
            return (a, b, POS_ZERO), (b, a, NEG_ZERO)
        case BinaryOp.MAX:
            # `a > b ? a : b`: equal operands and a NaN give `b`
            return (a, b, NEG | NEG_INF), (b, a, not_positive | NAN)
        case BinaryOp.MIN:
            return (a, b, POS | POS_INF), (b, a, not_negative | NAN)
        case _:
            return ()


def without_shared_parts(question: Question, fast_math: FastMathSet) -> Question | None:
    """A question whose proof under these fast-math assumptions proves the given one too; None where the sides share no
    operation.
    """
    if question.goal is not None:
        return None
    knowledge = Knowledge(question, fast_math)
    parts = _Parts(question, SignedZeroVariants(question, knowledge))
    new = parts.replaced(question.new, new_side=True)
    if not parts.variables:
        return None
    old = parts.replaced(question.old, new_side=False)
    conditions = tuple(parts.replaced(c, new_side=False) for c in question.conditions)
    always = {comparable(part) for part in always_evaluated(question.old)} if question.old_is_computed else set[Expr]()
    return replace(
        question,
        new=new,
        old=old,
        conditions=conditions,
        given=(
            *question.given,
            *(g for part, var in parts.variables.items() for g in _facts(var, knowledge.known(parts.source[part]))),
        ),
        # A variable that is gone from the old side would count as computed everywhere.
        computed=frozenset(v for v in question.computed if v in always_computed(question) or v in free_variables(old))
        | {var for part, var in parts.variables.items() if part in always},
        variants=(
            *question.variants,
            *((var, parts.variants[part]) for part, var in parts.variables.items() if part in parts.variants),
        ),
    )


def _facts(var: Var, known: Known) -> Iterator[Given]:
    if not var.dtype.is_float:
        return
    for kinds, fact in ((NAN, NotNan()), (INFINITE, NotInfinite()), (NEG_ZERO, NotNegativeZero())):
        if not known.kinds & kinds:
            yield Given(var, fact)
    if not math.isinf(known.low):
        yield Given(var, AtLeast(literal(known.low, var.dtype)))
    if not math.isinf(known.high):
        yield Given(var, AtMost(literal(known.high, var.dtype)))


class _Parts:
    """The largest parts that both sides have, up to order and the signs of zeros, and a variable for each."""

    def __init__(self, question: Question, variants: SignedZeroVariants) -> None:
        self._question = question
        self._variants = variants
        self._names = {v.name for v in question.variables}
        self.source: dict[Expr, Expr] = {}
        for part in _operations(question.old):
            self.source.setdefault(comparable(part), part)
        self.variables: dict[Expr, Var] = {}
        self.variants: dict[Expr, Var] = {}

    def replaced(self, expr: Expr, *, new_side: bool) -> Expr:
        """An expression with variables for the parts; the new side, which says which there are, comes first."""
        found = self._variable(expr, new_side)
        if found is not None:
            return found

        def visit(node: Node) -> Node:
            return self.replaced(node, new_side=new_side) if isinstance(node, Expr) else node

        result = map_children(expr, visit)
        assert isinstance(result, Expr)
        return result

    def _variable(self, expr: Expr, new_side: bool) -> Var | None:
        if not _is_operation(expr):
            return None
        if not new_side:
            return self.variables.get(comparable(expr))
        key = comparable(without_variants(self._question, expr))
        if key not in self.source or not self._variants.changes_zero_signs_only(expr):
            return None
        var = self.variables.get(key)
        if var is None:
            var = self.variables[key] = self._fresh(expr)
        if self._variants.changes_nothing(expr):
            return var
        if key not in self.variants:
            self.variants[key] = self._fresh(expr)
        return self.variants[key]

    def _fresh(self, expr: Expr) -> Var:
        name = take_fresh("part", self._names)
        return Var(name, expr.dtype)


def _operations(expr: Expr) -> Iterator[Expr]:
    return (node for node in walk(expr) if isinstance(node, Expr) and _is_operation(node))


def _is_operation(expr: Expr) -> bool:
    """Whether a part is worth a variable: arithmetic that may be hard, and traps nowhere."""
    return (
        isinstance(expr, Binary | Call)
        and not expr.dtype.is_bool
        and expr.dtype.lanes == 1
        and not can_trap_below(expr)
    )
