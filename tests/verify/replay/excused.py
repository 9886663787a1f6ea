"""Rewrites that are right under some fast-math assumptions only: values written otherwise, in random programs.

Each rule takes an expression to one that the named fast-math assumptions make equal, whatever stands around it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import Binary, Expr, IfThenElseExpr, Select, const
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite, Witness
from layoutproof.ir.stmt import BufferStore, Stmt
from layoutproof.ir.visit import map_children, stores_in, walk
from layoutproof.verify.values.fast_math import ALL, FastMath, FastMathSet

NNAN, NINF, NSZ, REASSOC = FastMath.NNAN, FastMath.NINF, FastMath.NSZ, FastMath.REASSOC


@dataclass(frozen=True)
class Rule:
    """What an expression may become, where it has the form for it, and the fast-math assumptions that allow it."""

    name: str
    fast_math: FastMathSet
    apply: Callable[[Expr, Random], Expr | None]


def _binary(op: BinaryOp, change: Callable[[Expr, Expr], Expr]) -> Callable[[Expr, Random], Expr | None]:
    return lambda e, rng: change(e.lhs, e.rhs) if isinstance(e, Binary) and e.op is op else None


def _any(change: Callable[[Expr], Expr]) -> Callable[[Expr, Random], Expr | None]:
    return lambda e, rng: change(e)


def _zero(e: Expr) -> Expr:
    return const(0.0, e.dtype)


def _is_cheap(e: Expr) -> bool:
    return not any(isinstance(node, IfThenElseExpr | Call) for node in walk(e))


def _cancelled(e: Expr, rng: Random) -> Expr | None:
    """`x` as `(x + x) - x`."""
    return (e + e) - e if _is_cheap(e) else None


def _distributed(e: Expr, rng: Random) -> Expr | None:
    """`(a + b) * c` as `a*c + b*c`, in whatever order."""
    match e:
        case Binary(op=BinaryOp.MUL, lhs=Binary(op=BinaryOp.ADD, lhs=a, rhs=b), rhs=c):
            return c * a + c * b
        case Binary(op=BinaryOp.MUL, lhs=c, rhs=Binary(op=BinaryOp.ADD, lhs=a, rhs=b)):
            return b * c + a * c
        case _:
            return None


def _regrouped(op: BinaryOp) -> Callable[[Expr, Random], Expr | None]:
    """`(a op b) op c` as `a op (c op b)`."""

    def change(e: Expr, rng: Random) -> Expr | None:
        match e:
            case Binary(op=outer, lhs=Binary(op=inner, lhs=a, rhs=b), rhs=c) if outer is op and inner is op:
                return Binary(op, a, Binary(op, c, b))
            case Binary(op=outer, lhs=c, rhs=Binary(op=inner, lhs=a, rhs=b)) if outer is op and inner is op:
                return Binary(op, Binary(op, b, c), a)
            case _:
                return None

    return change


def _without_zero(e: Expr, rng: Random) -> Expr | None:
    """`x` for `x + 0.0`."""
    return e.lhs if isinstance(e, Binary) and e.op is BinaryOp.ADD and e.rhs == _zero(e) else None


RULES = (
    Rule("x + 0.0 for x", frozenset({NSZ}), _any(lambda e: e + _zero(e))),
    Rule("x for x + 0.0", frozenset({NSZ}), _without_zero),
    Rule("b max a for a max b", frozenset({NNAN, NSZ}), _binary(BinaryOp.MAX, lambda a, b: Binary(BinaryOp.MAX, b, a))),
    Rule("b min a for a min b", frozenset({NNAN, NSZ}), _binary(BinaryOp.MIN, lambda a, b: Binary(BinaryOp.MIN, b, a))),
    Rule("a choice for a max b", frozenset({NNAN, NSZ}), _binary(BinaryOp.MAX, lambda a, b: Select(b <= a, a, b))),
    Rule("-(b - a) for a - b", frozenset({NSZ}), _binary(BinaryOp.SUB, lambda a, b: (b - a) * const(-1.0, a.dtype))),
    Rule("sums regrouped", frozenset({REASSOC}), _regrouped(BinaryOp.ADD)),
    Rule("products regrouped", frozenset({REASSOC}), _regrouped(BinaryOp.MUL)),
    Rule("a product distributed", ALL, _distributed),
    Rule("(x + x) - x for x", ALL, _cancelled),
    Rule("x * 3 / 3 for x", ALL, _any(lambda e: e * const(3.0, e.dtype) / const(3.0, e.dtype))),
    Rule("2x for x + x", ALL, _binary(BinaryOp.ADD, lambda a, b: a * const(2.0, a.dtype) if a == b else a + b)),
    Rule("x / 2 + x / 2 for x", ALL, _any(lambda e: e / const(2.0, e.dtype) + e * const(0.5, e.dtype))),
    Rule("(x + 1) - 1 for x", ALL, _any(lambda e: (e + const(1.0, e.dtype)) - const(1.0, e.dtype))),
    Rule("(x / 7) * 7 for x", ALL, _any(lambda e: (e / const(7.0, e.dtype)) * const(7.0, e.dtype))),
)  # fmt: skip


_SIGN_FREE = frozenset({"exp", "abs", "tanh", "sigmoid", "sqrt", "floor"})


def excused_rewrite(func: PrimFunc, rng: Random, count: int) -> tuple[Rewrite, FastMathSet, str] | None:
    """`func` with some float expressions of its stores written otherwise, the fast-math assumptions that this takes,
    and what was done.
    """
    new, fast_math, done = func, frozenset[FastMath](), []
    for _ in range(count):
        rule = rng.choice(RULES)
        body = _somewhere(new, rule, rng)
        if body is not None:
            new, fast_math = new.with_body(body), fast_math | rule.fast_math
            done.append(rule.name)
    if NSZ in fast_math and any(_minds_signs(node) for node in walk(func.body)):
        fast_math |= {NINF}  # then what tells zeros apart is left out
    return (Rewrite(func, new, Witness(())), fast_math, ", ".join(done)) if new != func else None


def _minds_signs(node: Node) -> bool:
    return (isinstance(node, Binary) and node.op is BinaryOp.DIV) or (
        isinstance(node, Call) and node.function not in _SIGN_FREE
    )


def _somewhere(func: PrimFunc, rule: Rule, rng: Random) -> Stmt | None:
    """The body with the rule applied at one place in the value of a store."""
    inputs = {b.data for b in func.buffers} - {store.buffer.data for store in stores_in(func.body)}
    places = 0
    chosen: int | None = None

    def in_value(node: Node) -> Node:
        nonlocal places
        changed = node if isinstance(node, BufferLoad) else map_children(node, in_value)
        # Literals are not computed, even when they come back from memory: no fast-math assumption speaks of them.
        excused = isinstance(changed, Binary | Call) or (
            isinstance(changed, BufferLoad) and changed.buffer.data in inputs
        )
        if excused and isinstance(changed, Expr) and changed.dtype.is_float and changed.dtype.lanes == 1:
            other = rule.apply(changed, rng)
            if other is not None and other != changed:
                places += 1
                return other if places - 1 == chosen else changed
        return changed

    def in_statement(node: Node) -> Node:
        if isinstance(node, BufferStore):
            value = in_value(node.value)
            assert isinstance(value, Expr)
            return replace(node, value=value) if value is not node.value else node
        return map_children(node, in_statement) if isinstance(node, Stmt) else node

    in_statement(func.body)
    if not places:
        return None
    chosen, places = rng.randrange(places), 0
    result = in_statement(func.body)
    return result if isinstance(result, Stmt) else None
