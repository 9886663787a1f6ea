"""Undefined values taken out of a question: what the new program has may be anything, what the old program has may be chosen.

An `undef` is fresh at each evaluation. In the new expression each occurrence becomes a variable of its own, over all values. In the old
one a value may be chosen to suit the claim; that is done only where the whole value stored is `undef`, or where structure alone pairs
the occurrences of both sides.
"""

from __future__ import annotations

from dataclasses import replace

from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.intrinsics import Undef
from layoutproof.ir.node import Node
from layoutproof.ir.subst import take_fresh
from layoutproof.ir.visit import map_children, walk
from layoutproof.verify.values.question import Question


def has_undef(expr: Expr) -> bool:
    """Whether an undefined value is evaluated somewhere in it."""
    return any(isinstance(node, Undef) for node in walk(expr))


def anything_will_do(question: Question) -> bool:
    """Whether the old program stores any value it likes."""
    return isinstance(question.old, Undef) and question.goal is None


def with_fresh_symbols(question: Question) -> Question:
    """The question with a new variable for each `undef` of the new expression."""
    taken = {v.name for v in question.variables}
    new = _named(question.new, taken)
    return replace(question, new=new, old=new if question.goal is not None else question.old)


def _named(expr: Expr, taken: set[str]) -> Expr:
    def visit(node: Node) -> Node:
        if isinstance(node, Undef):
            name = take_fresh("undef", taken)
            return Var(name, node.dtype)
        return map_children(node, visit)

    return expr if not has_undef(expr) else _expression(visit(expr))


def _expression(node: Node) -> Expr:
    assert isinstance(node, Expr)
    return node
