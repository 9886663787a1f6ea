"""Random claims about float16 values: many of them nearly right, so that a wrong proof or refutation would show."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from layoutproof.ir.dtype import FLOAT16, FLOAT32
from layoutproof.ir.expr import Binary, Cast, Compare, Expr, FloatImm, IfThenElseExpr, Select, Var, equal
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.ir.visit import map_children
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
    Property,
    Question,
    placeholder,
)

F = FLOAT16
NAMES = tuple(Var(name, F) for name in "xyz")
CONSTANTS = (0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), 2.0, 0.5, 65504.0, -65504.0, float("nan"))
_OPS = (BinaryOp.ADD, BinaryOp.ADD, BinaryOp.MUL, BinaryOp.SUB, BinaryOp.MAX, BinaryOp.MIN, BinaryOp.DIV)


def constant(rng: Random) -> Expr:
    """A special number."""
    return FloatImm(rng.choice(CONSTANTS), F)


def expression(rng: Random, depth: int) -> Expr:
    """Any expression of three variables."""
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(NAMES) if rng.random() < 0.7 else constant(rng)
    kind = rng.random()

    def part() -> Expr:
        return expression(rng, depth - 1)

    if kind < 0.6:
        return Binary(rng.choice(_OPS), part(), part())
    if kind < 0.7:
        return Call(rng.choice(("fmax", "fmin", "maximum", "minimum")), (part(), part()))
    if kind < 0.75:
        return Call("fma", (part(), part(), part()))
    if kind < 0.8:
        return Call(rng.choice(("abs", "sqrt", "floor")), (part(),))
    if kind < 0.85:
        return Cast(F, Cast(FLOAT32, part()))
    return rng.choice((Select, IfThenElseExpr))(Compare(rng.choice(list(CompareOp)), part(), part()), part(), part())


def nearly(rng: Random, expr: Expr) -> Expr:
    """The expression with something about it that seldom matters, somewhere in it."""
    if rng.random() < 0.5 or isinstance(expr, Var | FloatImm):
        return _wrapped(rng, expr)
    done = [False]

    def visit(node: Node) -> Node:
        if isinstance(node, Expr) and node.dtype == F and not done[0] and rng.random() < 0.6:
            done[0] = True
            return nearly(rng, node)
        return node

    return map_children(expr, visit)


def _wrapped(rng: Random, e: Expr) -> Expr:
    zero, x = FloatImm(rng.choice((0.0, -0.0)), F), rng.choice(NAMES)
    infinite = FloatImm(float("-inf"), F)
    choices = (
        e + zero,
        e * 1.0,
        e - zero,
        e + x * zero,
        e + zero * x * zero,
        e + (x - x),
        Binary(BinaryOp.MAX, e, FloatImm(rng.choice((float("-inf"), -65504.0, 0.0)), F)),
        Binary(BinaryOp.MAX, infinite, e),
        Binary(BinaryOp.MIN, e, FloatImm(float("inf"), F)),
        Call("fma", (x, zero, e)),
        Call(rng.choice(("maximum", "fmax")), (e, infinite)),
        Select(equal(x, x), e, e),
    )
    return rng.choice(choices)


def fact(rng: Random) -> Property:
    """Something that may be known of a value."""
    bound = FloatImm(rng.choice((0.0, -0.0, -65504.0, 1.0)), F)
    value = placeholder(F)
    return rng.choice(
        (
            NotNan(),
            NotInfinite(),
            NotNegativeZero(),
            AtLeast(bound),
            AtMost(bound),
            Identical(constant(rng)),
            Holds(value < FloatImm(float("inf"), F)),
            Holds(equal(value, value)),
            Holds(equal(value, FloatImm(0.0, F))),
        )
    )


def claim(rng: Random) -> tuple[Question, FastMathSet]:
    """A question, and what may be used to answer it."""
    old = expression(rng, rng.choice((0, 1, 2, 2)))
    new = nearly(rng, old) if rng.random() < 0.8 else expression(rng, 2)
    if rng.random() < 0.3:
        new = nearly(rng, new)
    given = [Given(x, fact(rng)) for x in NAMES if rng.random() < 0.4]
    computed = [x for x in NAMES if rng.random() < 0.5]
    conditions = []
    if rng.random() < 0.2:
        conditions.append(
            Compare(rng.choice(list(CompareOp)), rng.choice(NAMES), rng.choice((*NAMES, FloatImm(0.0, F))))
        )
    loose = [x for x in NAMES if rng.random() < 0.15]
    is_computed = rng.random() < 0.6
    question = Question(new, old, tuple(given), tuple(conditions), frozenset(computed), is_computed).loosened(loose)
    allowed = frozenset(rng.sample(list(FastMath), rng.randint(0, 4)))
    if rng.random() < 0.2:
        goal = rng.choice(
            (NotNan(), NotNegativeZero(), NotInfinite(), AtLeast(FloatImm(0.0, F)), AtMost(FloatImm(0.0, F)))
        )
        question = replace(question, old=question.new, variants=(), goal=goal)
        allowed -= {FastMath.REASSOC, FastMath.NSZ}
    return question, allowed
