"""Random claims about values of every type, as rewrites make them: choices that data decides, casts, lazy branches,
operands swapped, zeros and infinities for padding, parts that only one side has.
"""

from __future__ import annotations

import math
from random import Random

from tests.verify.values.asking import make_question

from layoutproof.ir.dtype import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT8, INT32, UINT8, DType
from layoutproof.ir.expr import (
    Binary,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IfThenElseExpr,
    IntImm,
    Select,
    Var,
    equal,
    logical_and,
)
from layoutproof.ir.intrinsics import Call, Reinterpret
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.ir.semantics import max_finite, round_float
from layoutproof.ir.visit import map_children
from layoutproof.verify.values.fast_math import FastMath, FastMathSet
from layoutproof.verify.values.question import (
    AtLeast,
    AtMost,
    Given,
    Identical,
    NotInfinite,
    NotNan,
    NotNegativeZero,
    Property,
    Question,
)

FLOATS = (FLOAT16, BFLOAT16, FLOAT32, FLOAT64)
INTEGERS = (INT8, UINT8, INT32)
_ARITHMETIC = (
    BinaryOp.ADD,
    BinaryOp.SUB,
    BinaryOp.MUL,
    BinaryOp.ADD,
    BinaryOp.MUL,
    BinaryOp.MIN,
    BinaryOp.MAX,
    BinaryOp.DIV,
)
_WHOLE = (
    BinaryOp.ADD,
    BinaryOp.SUB,
    BinaryOp.MUL,
    BinaryOp.MIN,
    BinaryOp.MAX,
    BinaryOp.BITAND,
    BinaryOp.FLOORDIV,
    BinaryOp.FLOORMOD,
)
_ONE = ("abs", "sqrt", "floor", "exp", "tanh", "sigmoid")
_TWO = ("maximum", "fmax", "minimum")


class Claims:
    """Claims over a float type and an integer type: `x y z` are floats, `n` is an integer, `c` a truth value."""

    def __init__(self, rng: Random, dtype: DType, whole: DType) -> None:
        self.rng = rng
        self.dtype, self.whole = dtype, whole
        self.floats = tuple(Var(name, dtype) for name in "xyz")
        self.n, self.c = Var("n", whole), Var("c", BOOL)

    def constant(self) -> FloatImm:
        """A literal: mostly one that matters."""
        most = max_finite(self.dtype)
        choices = (0.0, -0.0, 0.0, 1.0, -1.0, 2.0, 0.5, 3.0, math.inf, -math.inf, most, -most, math.nan)
        return FloatImm(round_float(self.rng.choice(choices), self.dtype), self.dtype)

    def expression(self, depth: int) -> Expr:
        """A float expression."""
        rng = self.rng
        if depth == 0:
            return rng.choice(self.floats) if rng.random() < 0.75 else self.constant()
        kind = rng.random()
        if kind < 0.55:
            return Binary(rng.choice(_ARITHMETIC), self.expression(depth - 1), self.expression(rng.randrange(depth)))
        if kind < 0.68:
            return Call(rng.choice(_ONE), (self.expression(depth - 1),))
        if kind < 0.73:
            return Call(rng.choice(_TWO), (self.expression(depth - 1), self.expression(0)))
        if kind < 0.77:
            return Call("fma", (self.expression(0), self.expression(0), self.expression(depth - 1)))
        if kind < 0.94:
            choice = rng.choice((Select, IfThenElseExpr, IfThenElseExpr))
            return choice(self.condition(), self.expression(depth - 1), self.expression(rng.randrange(depth)))
        if kind < 0.97:
            to_float = Reinterpret if self.dtype.bits == self.whole.bits and rng.random() < 0.5 else Cast
            return to_float(self.dtype, self.integer(1))
        return Cast(self.dtype, Cast(rng.choice(FLOATS), self.expression(depth - 1)))

    def integer(self, depth: int) -> Expr:
        """An integer expression, now and then of floats."""
        rng = self.rng
        if depth == 0:
            return self.n if rng.random() < 0.6 else IntImm(rng.choice((0, 1, 2, 3, 7)), self.whole)
        if rng.random() < 0.1:
            return Cast(self.whole, self.expression(0))
        return Binary(rng.choice(_WHOLE), self.integer(depth - 1), self.integer(depth - 1))

    def condition(self) -> Expr:
        """A truth value."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.4:
            return self.c
        if kind < 0.6:
            return Compare(rng.choice(list(CompareOp)), self.n, IntImm(rng.choice((0, 1, 5)), self.whole))
        if kind < 0.65:
            return logical_and(self.c, equal(rng.choice(self.floats), FloatImm(0.0, self.dtype)))
        return Compare(
            rng.choice(list(CompareOp)), rng.choice(self.floats), rng.choice((*self.floats, self.constant()))
        )

    def nearly(self, expr: Expr) -> Expr:
        """An expression that is often the same value, or nearly."""
        rng = self.rng
        if rng.random() < 0.35 or isinstance(expr, Var | FloatImm):
            return self._wrapped(expr)
        if rng.random() < 0.35:
            return _turned(rng, expr)
        done = False

        def visit(node: Node) -> Node:
            nonlocal done
            if isinstance(node, Expr) and node.dtype == self.dtype and not done and rng.random() < 0.6:
                done = True
                return self.nearly(node)
            return node

        return map_children(expr, visit)

    def _wrapped(self, e: Expr) -> Expr:
        rng = self.rng
        zero, x, other = FloatImm(rng.choice((0.0, -0.0)), self.dtype), rng.choice(self.floats), self.expression(1)
        infinite = FloatImm(rng.choice((math.inf, -math.inf)), self.dtype)
        choices = (
            lambda: e + zero,
            lambda: e * FloatImm(1.0, self.dtype),
            lambda: e - zero,
            lambda: e + x * zero,
            lambda: e + (x - x),
            lambda: e + other * zero,
            lambda: e + Call("exp", (FloatImm(-math.inf, self.dtype) - x,)),
            lambda: Binary(rng.choice((BinaryOp.MAX, BinaryOp.MIN)), e, infinite),
            lambda: Binary(rng.choice((BinaryOp.MAX, BinaryOp.MIN)), infinite, e),
            lambda: Call("fma", (x, zero, e)),
            lambda: Select(self.condition(), e, e),
            lambda: IfThenElseExpr(self.condition(), e, e + zero),
            lambda: Select(self.c, e, other),
            lambda: IfThenElseExpr(self.c, e, other),
            lambda: Select(self.c, e, x - x),
        )
        return rng.choice(choices)()

    def fact(self) -> Property:
        """Something that may be known of a value."""
        rng = self.rng
        bound = FloatImm(round_float(rng.choice((0.0, -0.0, 1.0, -max_finite(self.dtype))), self.dtype), self.dtype)
        return rng.choice(
            (NotNan(), NotInfinite(), NotNegativeZero(), AtLeast(bound), AtMost(bound), Identical(self.constant()))
        )

    def claim(self) -> tuple[Question, FastMathSet]:
        """A question, and what may be used to answer it."""
        rng = self.rng
        old = self.expression(rng.choice((0, 1, 2, 2, 3)))
        new = old if rng.random() < 0.05 else self.nearly(old)
        for _ in range(rng.choice((0, 0, 1, 2))):
            if rng.random() < 0.5:
                new = self.nearly(new)
            else:
                old = self.nearly(old)
        given = [Given(x, self.fact()) for x in self.floats if rng.random() < 0.3]
        if rng.random() < 0.1:
            given.append(Given(self.floats[0], Identical(self.floats[1])))
        computed = [x for x in self.floats if rng.random() < 0.6]
        conditions = [self.condition()] if rng.random() < 0.15 else []
        loose = [x for x in self.floats if rng.random() < 0.25] if rng.random() < 0.4 else []
        allowed = (
            frozenset(FastMath) if rng.random() < 0.4 else frozenset(rng.sample(list(FastMath), rng.randint(0, 4)))
        )
        return make_question(new, old, given, conditions, computed, rng.random() < 0.75, loose), allowed


def _turned(rng: Random, expr: Expr) -> Expr:
    """With operands or branches swapped, or a choice of the other kind."""
    match expr:
        case Binary(op=op, lhs=a, rhs=b):
            return Binary(op, b, a)
        case Select(condition=c, then=a, otherwise=b):
            return IfThenElseExpr(c, a, b)
        case IfThenElseExpr(condition=c, then=a, otherwise=b):
            return Select(c, a, b) if rng.random() < 0.7 else IfThenElseExpr(c, b, a)
        case Call(function="fma", arguments=(a, b, c)):
            return a * b + c
        case Call(function="maximum" | "fmax", arguments=(a, b)):
            return Binary(BinaryOp.MAX, a, b)
        case _:
            return expr
