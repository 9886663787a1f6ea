"""What a claim about values means, by brute force: one point at a time, one operation at a time, every choice of zero
signs followed.

It shares the meaning of single operations with the interpreter and nothing with the provers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Protocol

from layoutproof.ir import semantics
from layoutproof.ir.expr import Binary, Cast, Compare, Expr, FloatImm, IfThenElseExpr, IntImm, Logical, Not, Select, Var
from layoutproof.ir.interp.runtime import call_math
from layoutproof.ir.interp.walk_expr import binary_value
from layoutproof.ir.intrinsics import Call, Limit, LimitKind, Reinterpret
from layoutproof.ir.operators import COMPARISONS, LogicalOp
from layoutproof.ir.semantics import Trap
from layoutproof.ir.visit import free_variables
from layoutproof.verify.values.fast_math import FastMath, FastMathSet
from layoutproof.verify.values.question import (
    AtLeast,
    AtMost,
    Holds,
    Identical,
    NotInfinite,
    NotNan,
    NotNegativeZero,
    Property,
    Question,
    condition_on,
)

Number = float | int
Env = Mapping[str, Number]


@dataclass(frozen=True)
class Behaviour:
    """One way for an expression to be evaluated: its value, and the values of the float operations on the way."""

    value: Number
    floats: tuple[float, ...]


def behaviours(expr: Expr, env: Env, choosing: bool) -> Iterator[Behaviour]:
    """Every behaviour of an expression; with `choosing`, operations pick the signs of the zeros that they yield. Raises
    Trap.
    """
    match expr:
        case Var(name=name):
            yield Behaviour(env[name], ())
        case IntImm(value=value) | FloatImm(value=value):
            yield Behaviour(value, ())
        case Limit():
            yield Behaviour(_limit(expr), ())
        case IfThenElseExpr(condition=c, then=a, otherwise=b):
            for first in behaviours(c, env, choosing):
                for taken in behaviours(a if first.value else b, env, choosing):
                    yield from _result(expr, taken.value, (*first.floats, *taken.floats), False)
        case Logical(op=op, lhs=a, rhs=b):
            for first in behaviours(a, env, choosing):
                if bool(first.value) is (op is LogicalOp.OR):
                    yield first
                else:
                    for second in behaviours(b, env, choosing):
                        yield Behaviour(second.value, (*first.floats, *second.floats))
        case _:
            operands = [list(behaviours(part, env, choosing)) for part in _operands(expr)]
            for chosen in product(*operands):
                floats = tuple(f for behaviour in chosen for f in behaviour.floats)
                yield from _result(expr, _apply(expr, [b.value for b in chosen]), floats, choosing and _chooses(expr))


def _result(expr: Expr, value: Number, floats: tuple[float, ...], choosing: bool) -> Iterator[Behaviour]:
    if not expr.dtype.is_float:
        yield Behaviour(value, floats)
        return
    results = (0.0, -0.0) if choosing and value == 0 else (float(value),)
    for result in results:
        # a choice computes nothing: it may pick a literal
        yield Behaviour(result, floats if isinstance(expr, Select | IfThenElseExpr) else (*floats, result))


def _chooses(expr: Expr) -> bool:
    return isinstance(expr, Binary) or (isinstance(expr, Call) and expr.function != "abs")


def _operands(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Binary(lhs=a, rhs=b) | Compare(lhs=a, rhs=b):
            return a, b
        case Not(operand=a) | Cast(value=a) | Reinterpret(value=a):
            return (a,)
        case Select(condition=c, then=a, otherwise=b):
            return c, a, b
        case Call(arguments=arguments):
            return arguments
        case _:
            raise TypeError(type(expr).__name__)


def _apply(expr: Expr, values: list[Number]) -> Number:
    match expr:
        case Binary(op=op):
            return binary_value(op, values[0], values[1], expr.dtype, False)
        case Compare(op=op):
            return int(COMPARISONS[op](*values))
        case Not():
            return int(not values[0])
        case Select():
            return values[1] if values[0] else values[2]
        case Cast(value=inner):
            return semantics.cast_value(values[0], inner.dtype, expr.dtype)
        case Reinterpret():
            return semantics.float_of_bits(int(values[0]), expr.dtype)
        case Call(function=function):
            return call_math(function, tuple(values), expr.dtype)
        case _:
            raise TypeError(type(expr).__name__)


def reads(expr: Expr, env: Env) -> set[str]:
    """The variables that are evaluated at a point."""
    match expr:
        case Var(name=name):
            return {name}
        case IfThenElseExpr(condition=c, then=a, otherwise=b):
            return reads(c, env) | reads(a if next(behaviours(c, env, False)).value else b, env)
        case Logical(op=op, lhs=a, rhs=b):
            decided = bool(next(behaviours(a, env, False)).value) is (op is LogicalOp.OR)
            return reads(a, env) | (set() if decided else reads(b, env))
        case IntImm() | FloatImm() | Limit():
            return set()
        case _:
            return set().union(*(reads(part, env) for part in _operands(expr)))


def _limit(expr: Limit) -> Number:
    if expr.dtype.is_integer:
        return expr.dtype.min_int if expr.kind is LimitKind.MIN else expr.dtype.max_int
    largest = math.inf if expr.kind is LimitKind.INFINITY else semantics.max_finite(expr.dtype)
    return -largest if expr.kind is LimitKind.MIN else largest


def value_at(expr: Expr, env: Env) -> Behaviour | None:
    """The behaviour that IEEE gives, or None for a trap."""
    try:
        return next(behaviours(expr, env, False))
    except Trap:
        return None


def identical(a: Number, b: Number) -> bool:
    """Value identity."""
    if isinstance(a, float) or isinstance(b, float):
        x, y = float(a), float(b)
        return (x != x and y != y) or (x == y and math.copysign(1.0, x) == math.copysign(1.0, y))
    return a == b


def alike(a: Number, b: Number) -> bool:
    """Equal up to the sign of zero."""
    return identical(a, b) or (a == b == 0)


def has(known: Property, var: Expr, env: Env) -> bool:
    """Whether a property holds of an expression's value at a point."""
    here = value_at(var, env)
    assert here is not None
    x = here.value
    match known:
        case NotNan():
            return x == x
        case NotInfinite():
            return not (isinstance(x, float) and math.isinf(x))
        case NotNegativeZero():
            return not identical(x, -0.0) or not isinstance(x, float)
        case AtLeast(bound) | AtMost(bound) | Identical(bound):
            other = value_at(bound, env)
            assert other is not None
            if isinstance(known, Identical):
                return identical(x, other.value)
            return not (x < other.value if isinstance(known, AtLeast) else x > other.value)
        case Holds():
            outcome = value_at(condition_on(known, var), env)
            return outcome is not None and bool(outcome.value)


def violated(question: Question, fast_math: FastMathSet, env: Env) -> bool:
    """Whether the hypotheses hold at a point and the claim does not; `reassoc` is left out."""
    old = value_at(question.old, env)
    if old is None or not all(has(g.property, g.var, env) for g in question.given):
        return False
    for condition in question.conditions:
        outcome = value_at(condition, env)
        if outcome is None or not outcome.value:
            return False
    if any(not alike(env[a.name], env[b.name]) for a, b in question.variants):
        return False
    exact = {
        g.var for g in question.given if isinstance(g.property, Identical) and not isinstance(g.property.value, Var)
    }
    mentioned = {v.name for v in free_variables(question.old)} if question.old_is_computed else set()
    ignored = mentioned - reads(question.old, env) if question.old_is_computed else set()
    computed = [v for v in question.computed - exact if v.dtype.is_float and v.name in env and v.name not in ignored]
    restricted = [float(env[v.name]) for v in computed]
    restricted += old.floats if question.old_is_computed else ()
    if FastMath.NNAN in fast_math and any(math.isnan(x) for x in restricted):
        return False
    if FastMath.NINF in fast_math and any(math.isinf(x) for x in restricted):
        return False
    new = value_at(question.new, env)
    if question.goal is not None:
        return new is not None and not has(question.goal, question.new, env)
    if new is None:
        return True
    if FastMath.NSZ not in fast_math:
        return not identical(new.value, old.value)
    choices = behaviours(question.old, env, True) if question.old_is_computed else iter((old,))
    return not any(alike(new.value, b.value) for b in choices)


class Mentions(Protocol):
    """Whatever mentions variables."""

    @property
    def variables(self) -> tuple[Var, ...]:
        """Them."""


def random_points(question: Mentions, values: list[Number], count: int, rng: Random) -> Iterator[dict[str, Number]]:
    """Assignments from a list of values, all of them where they are few."""
    names = [v.name for v in question.variables]
    if len(values) ** len(names) <= count:
        for row in product(values, repeat=len(names)):
            yield dict(zip(names, row, strict=True))
        return
    for _ in range(count):
        yield {name: rng.choice(values) for name in names}
