"""Simplification of index arithmetic: normal forms of sums, and the rules of `rules.py` whose conditions the scope
proves.

Termination: each rule replaces an expression by one with fewer or smaller divisions, sums have one canonical order, and
the parts of a result are simplified by going down, never by starting over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.dtype import DType
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import (
    TRUE,
    Binary,
    Broadcast,
    Cast,
    Compare,
    Expr,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Ramp,
    Select,
    Var,
    const,
    logical_and,
    widen,
)
from layoutproof.ir.operators import BinaryOp, LogicalOp
from layoutproof.ir.rewrite import Rule
from layoutproof.ir.semantics import Trap
from layoutproof.ir.visit import walk
from layoutproof.lowering.arith.affine import Affine, affine_of, expression_of
from layoutproof.lowering.arith.known_facts import Scope
from layoutproof.lowering.arith.rules import (
    COMPARE_RULES,
    EXTREME_RULES,
    FLOORDIV_FACTOR_RULES,
    FLOORDIV_RULES,
    FLOORMOD_FACTOR_RULES,
    FLOORMOD_RULES,
    NESTED_RULES,
    SUM_RULES,
    TRUNCATING_RULES,
    VALUE_RULES,
    instantiate,
    replaced,
    try_match,
)

_LINEAR = (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL)
_DIVISIONS = (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD)


@dataclass(frozen=True, slots=True)
class IndexSimplifier:
    """Simplifies index arithmetic. Every sub-expression fits its type, so integers have no width here."""

    scope: Scope

    def simplify(self, expr: Expr) -> Expr:
        """An equal expression of the same type; the same object when there is nothing to do."""
        rule = _SIMPLIFIERS.get(type(expr))
        if rule is None or (expr.dtype.lanes > 1 and not isinstance(expr, Ramp | Broadcast)):
            return expr
        result = rule(self, expr)
        return expr if result == expr else result

    def variable(self, expr: Var) -> Expr:
        """The variable, or the one value that it can have (rule `known-value`)."""
        if not expr.dtype.is_integer:
            return expr
        found = self.scope.bounds(expr)
        return const(found.low, expr.dtype) if found.is_point else expr

    def binary(self, expr: Binary) -> Expr:
        left, right = self.simplify(expr.lhs), self.simplify(expr.rhs)
        if not _has_product(expr):
            return self.operation(replace(expr, lhs=left, rhs=right))
        # Products of symbols stay as they are written, so that they are the same terms everywhere.
        changed = replace(expr, lhs=_smaller(left, expr.lhs), rhs=_smaller(right, expr.rhs))
        return _smaller(self.operation(changed), changed)

    def operation(self, expr: Binary) -> Expr:
        """A binary operation whose operands are simplified already."""
        if isinstance(expr.lhs, IntImm) and isinstance(expr.rhs, IntImm):
            return _folded(expr)
        if expr.op in _LINEAR:
            return self.sum_of(affine_of(expr), expr.dtype, list(affine_of(expr).terms))
        if expr.op in _DIVISIONS:
            return self.division(expr)
        for rule in (*TRUNCATING_RULES, *EXTREME_RULES):
            binding = try_match(_typed(rule, expr.dtype), expr)
            if binding is not None and self.holds(rule, binding, expr.dtype):
                return self.built(rule, binding, expr.dtype)
        return expr

    def sum_of(self, total: Affine, dtype: DType, first: Sequence[Expr]) -> Expr:
        """A sum, with quotients and remainders that belong together joined."""
        for one, coefficient in total.terms.items():
            for other, step in total.terms.items():
                joined = self.joined(one, coefficient, other, step, dtype) if one is not other else None
                if joined is not None:
                    rest = Affine({t: c for t, c in total.terms.items() if t not in (one, other)}, total.constant)
                    return self.sum_of(rest + affine_of(joined).scaled(step), dtype, first)
        return expression_of(total, dtype, first)

    def joined(self, one: Expr, coefficient: int, other: Expr, step: int, dtype: DType) -> Expr | None:
        """`coefficient * one + step * other` as `step` times one expression, by the first rule of sums that fits."""
        if (
            isinstance(one, Cast)
            and isinstance(other, Cast)
            and one.value.dtype == other.value.dtype
            and one.value.dtype.is_integer
        ):
            # Digits that are widened one by one: their number is part of them, and fits as they do.
            narrow = self.joined(one.value, coefficient, other.value, step, one.value.dtype)
            return None if narrow is None else self.simplify_widened(_pushed(narrow, dtype))
        if coefficient % step != 0:
            return None
        for rule, binding in _digit_bindings(one, coefficient // step, other):
            if self.holds(rule, binding, dtype):
                return self.built(rule, binding, dtype)
        return None

    def division(self, expr: Binary) -> Expr:
        """A floor division or its remainder, the operands simplified."""
        rules, factor_rules = (
            (FLOORDIV_RULES, FLOORDIV_FACTOR_RULES)
            if expr.op is BinaryOp.FLOORDIV
            else (FLOORMOD_RULES, FLOORMOD_FACTOR_RULES)
        )
        quotient, rest = _split(affine_of(expr.lhs), expr.rhs)
        binding = self.binding(a=quotient, c=affine_of(expr.rhs), r=rest, dtype=expr.dtype)
        for rule in rules:
            useful = quotient.terms or quotient.constant != 0 or "split" not in rule.name
            one = "by-one" not in rule.name or expr.rhs == const(1, expr.dtype)
            if useful and one and self.holds(rule, binding, expr.dtype):
                return self.built(rule, binding, expr.dtype)
        for binding in self.factor_bindings(rest, expr):
            for rule in factor_rules:
                if self.holds(rule, binding, expr.dtype):
                    return self.built(rule, binding, expr.dtype)
        for rule, nested in _nested_bindings(expr):
            if self.holds(rule, nested, expr.dtype):
                return self.built(rule, nested, expr.dtype)
        return expr

    def binding(self, dtype: DType, **parts: Affine) -> dict[str, Expr]:
        return {name: expression_of(part, dtype, list(part.terms)) for name, part in parts.items()}

    def factor_bindings(self, dividend: Affine, expr: Binary) -> Iterator[dict[str, Expr]]:
        """Factors `c` of a constant divisor `b*c` that leave a part of the dividend below `c`, the largest first."""
        if not isinstance(expr.rhs, IntImm) or expr.rhs.value < 2:
            return
        divisor = expr.rhs.value
        factors = sorted({gcd(coefficient, divisor) for coefficient in dividend.terms.values()} - {1}, reverse=True)
        for factor in factors:
            whole, rest = dividend.split(factor)
            if whole.terms or whole.constant:
                parts = {"a": whole, "b": Affine({}, divisor // factor), "c": Affine({}, factor), "r": rest}
                yield self.binding(expr.dtype, **parts)

    def compare(self, expr: Compare) -> Expr:
        left, right = self.simplify(expr.lhs), self.simplify(expr.rhs)
        changed = replace(expr, lhs=left, rhs=right)
        if not left.dtype.is_integer or left.dtype.lanes > 1:
            return changed
        for rule in COMPARE_RULES:
            binding = try_match(_typed(rule, left.dtype), changed)
            if binding is not None and self.holds(rule, binding, left.dtype):
                return self.built(rule, binding, left.dtype)
        return changed

    def logical(self, expr: Logical) -> Expr:
        left = self.simplify(expr.lhs)
        inner = self.scope.with_condition(left, expr.op is LogicalOp.AND)
        right = IndexSimplifier(inner).simplify(expr.rhs)
        return apply_value_rules(replace(expr, lhs=left, rhs=right))

    def negation(self, expr: Not) -> Expr:
        return apply_value_rules(replace(expr, operand=self.simplify(expr.operand)))

    def choice(self, expr: Select | IfThenElseExpr) -> Expr:
        condition = self.simplify(expr.condition)
        # Both sides of a select are evaluated, but only the chosen one matters.
        then = IndexSimplifier(self.scope.with_condition(condition)).simplify(expr.then)
        otherwise = IndexSimplifier(self.scope.with_condition(condition, False)).simplify(expr.otherwise)
        return apply_value_rules(replace(expr, condition=condition, then=then, otherwise=otherwise))

    def cast(self, expr: Cast) -> Expr:
        inner = self.simplify(expr.value)
        if not (expr.dtype.is_integer and inner.dtype.is_integer):
            return replace(expr, value=inner)
        return (
            self.simplify_widened(_pushed(inner, expr.dtype))
            if expr.dtype.bits > inner.dtype.bits
            else replace(expr, value=inner)
        )

    def simplify_widened(self, expr: Expr) -> Expr:
        """The result of moving a cast to the leaves: sums are put in order again, leaves stay."""
        return expr if isinstance(expr, Cast) else self.simplify(expr)

    def ramp(self, expr: Ramp) -> Expr:
        return replace(expr, base=self.simplify(expr.base), stride=self.simplify(expr.stride))

    def broadcast(self, expr: Broadcast) -> Expr:
        return replace(expr, value=self.simplify(expr.value))

    def load(self, expr: BufferLoad) -> Expr:
        return replace(expr, indices=tuple(self.simplify(i) for i in expr.indices))

    def holds(self, rule: Rule, binding: Mapping[str, Expr], dtype: DType) -> bool:
        """Whether the scope proves the rule's condition, and every constant of it fits the type."""
        try:
            condition = instantiate(rule.condition, binding, dtype)
            instantiate(rule.rhs, binding, dtype)
        except (ValueError, KeyError):
            return False
        return self.scope.proves(condition)

    def built(self, rule: Rule, binding: Mapping[str, Expr], dtype: DType) -> Expr:
        """The rule's right side, itself simplified."""
        result = instantiate(rule.rhs, binding, dtype)
        return self.simplify(result)


def not_plain(conditions: Iterable[Expr], scope: Scope) -> Expr:
    """The conjunction of those conditions that are not plain in a scope."""
    kept: list[Expr] = []
    for condition in conditions:
        plain = IndexSimplifier(scope).simplify(condition)
        if plain != TRUE and not scope.proves(plain) and plain not in kept:
            kept.append(plain)
    return logical_and(*kept)


def _has_product(expr: Expr) -> bool:
    """Whether an expression contains a product of two terms that are not constant."""
    products = (n for n in walk(expr) if isinstance(n, Binary) and n.op is BinaryOp.MUL)
    return any(not isinstance(n.lhs, IntImm) and not isinstance(n.rhs, IntImm) for n in products)


def _smaller(changed: Expr, expr: Expr) -> Expr:
    """The rewritten expression if it has fewer parts, else the old one."""
    return changed if sum(1 for _ in walk(changed)) < sum(1 for _ in walk(expr)) else expr


def _folded(expr: Binary) -> Expr:
    try:
        value = evaluate(expr, {})
    except Trap:
        return expr
    fits = expr.dtype.min_int <= value <= expr.dtype.max_int
    return const(value, expr.dtype) if fits else expr


def _split(dividend: Affine, divisor: Expr) -> tuple[Affine, Affine]:
    """`(q, r)` with `dividend == divisor * q + r`, for a constant or for a term that is a factor in the dividend."""
    if isinstance(divisor, IntImm):
        return dividend.split(divisor.value) if divisor.value > 0 else (Affine({}), dividend)
    whole, rest = Affine({}, 0), Affine({}, dividend.constant)
    for term, coefficient in dividend.terms.items():
        other = _cofactor(term, divisor)
        if other is None:
            rest = rest + Affine({term: coefficient})
        else:
            whole = whole + affine_of(other).scaled(coefficient)
    return whole, rest


def _cofactor(term: Expr, factor: Expr) -> Expr | None:
    if term == factor:
        return const(1, term.dtype)
    if isinstance(term, Binary) and term.op is BinaryOp.MUL:
        if term.rhs == factor:
            return term.lhs
        if term.lhs == factor:
            return term.rhs
    return None


def _is_op(expr: Expr, op: BinaryOp) -> bool:
    return isinstance(expr, Binary) and expr.op is op and isinstance(expr.rhs, IntImm) and expr.rhs.value > 0


def _constant(value: int, like: Expr) -> Expr:
    return IntImm(value, like.dtype)


def _nested_bindings(expr: Binary) -> Iterator[tuple[Rule, dict[str, Expr]]]:
    """Bindings of the rules about a division of a division, both by constants."""
    inner, outer = expr.lhs, expr.rhs
    if (
        not isinstance(inner, Binary)
        or not isinstance(outer, IntImm)
        or outer.value < 1
        or not isinstance(inner.rhs, IntImm)
    ):
        return
    div_of_div, div_of_mod, mod_of_mod = NESTED_RULES
    if inner.op is BinaryOp.FLOORDIV and expr.op is BinaryOp.FLOORDIV:
        yield div_of_div, {"a": inner.lhs, "b": inner.rhs, "c": outer}
    elif inner.op is BinaryOp.FLOORMOD and inner.rhs.value % outer.value == 0:
        rule = div_of_mod if expr.op is BinaryOp.FLOORDIV else mod_of_mod
        yield rule, {"a": inner.lhs, "b": _constant(inner.rhs.value // outer.value, inner), "c": outer}


def _digit_bindings(one: Expr, ratio: int, other: Expr) -> Iterator[tuple[Rule, dict[str, Expr]]]:
    """Bindings of the rules of sums for `ratio * one + other`, with the remainders that splitting removed put back."""
    if not isinstance(one, Binary) or not isinstance(other, Binary) or ratio < 1:
        return
    whole, join_digits, join_remainders = SUM_RULES
    if not (isinstance(one.rhs, IntImm) and isinstance(other.rhs, IntImm) and other.op is BinaryOp.FLOORMOD):
        return
    if one.op is BinaryOp.FLOORDIV and one.rhs == other.rhs and one.lhs == other.lhs and ratio == one.rhs.value:
        yield whole, {"a": one.lhs, "c": one.rhs}
    inner = other.lhs
    if (
        one.op is BinaryOp.FLOORDIV
        and other.rhs.value == ratio
        and _is_op(inner, BinaryOp.FLOORDIV)
        and isinstance(inner, Binary)
    ):
        assert isinstance(inner.rhs, IntImm)
        if inner.lhs == one.lhs and one.rhs.value == ratio * inner.rhs.value:
            yield join_digits, {"a": one.lhs, "b": other.rhs, "c": inner.rhs}
    digit = one.lhs
    if (
        one.op is BinaryOp.FLOORMOD
        and other.rhs.value == ratio
        and _is_op(digit, BinaryOp.FLOORDIV)
        and isinstance(digit, Binary)
    ):
        if digit.lhs == other.lhs and digit.rhs == other.rhs:
            yield join_remainders, {"a": other.lhs, "b": one.rhs, "c": other.rhs}


_RETYPED: dict[tuple[str, DType], Rule] = {}


def _typed(rule: Rule, dtype: DType) -> Rule:
    """An index rule with its placeholder integers given a type, for matching by form."""
    found = _RETYPED.get((rule.name, dtype))
    if found is None:
        variables = tuple(Var(v.name, dtype) for v in rule.variables)
        binding: dict[str, Expr] = {v.name: v for v in variables}
        sides = (instantiate(side, binding, dtype) for side in (rule.lhs, rule.rhs, rule.condition))
        lhs, rhs, condition = sides
        found = _RETYPED[rule.name, dtype] = replace(rule, variables=variables, lhs=lhs, rhs=rhs, condition=condition)
    return found


def _pushed(expr: Expr, dtype: DType) -> Expr:
    """Index arithmetic in a wider type, with the cast moved into its sums. Quotients stay: they are terms elsewhere
    too.
    """
    if isinstance(expr, Binary) and expr.op in _LINEAR:
        return Binary(expr.op, _pushed(expr.lhs, dtype), _pushed(expr.rhs, dtype))
    if isinstance(expr, Select | IfThenElseExpr):
        return replace(expr, then=_pushed(expr.then, dtype), otherwise=_pushed(expr.otherwise, dtype))
    if isinstance(expr, Cast) and expr.value.dtype.is_integer and expr.value.dtype.bits < expr.dtype.bits:
        return Cast(dtype, expr.value)
    return widen(expr, dtype)


def apply_value_rules(expr: Expr) -> Expr:
    """The expression after the first value rule of its type that fits, again and again until none does."""
    for rule in VALUE_RULES.get(expr.dtype, ()):
        binding = try_match(rule, expr)
        if binding is not None:
            return apply_value_rules(replaced(rule, binding))
    return expr


_SIMPLIFIERS: Mapping[type[Expr], Callable[[IndexSimplifier, Any], Expr]] = {
    Var: IndexSimplifier.variable,
    Binary: IndexSimplifier.binary,
    Compare: IndexSimplifier.compare,
    Logical: IndexSimplifier.logical,
    Not: IndexSimplifier.negation,
    Select: IndexSimplifier.choice,
    IfThenElseExpr: IndexSimplifier.choice,
    Cast: IndexSimplifier.cast,
    Ramp: IndexSimplifier.ramp,
    Broadcast: IndexSimplifier.broadcast,
    BufferLoad: IndexSimplifier.load,
}
