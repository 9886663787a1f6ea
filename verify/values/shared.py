"""Parts that both sides of a question have, replaced by variables: what is left is often easy where the parts are hard.

If the claim holds whatever the parts are, it holds: of each part only its kinds and bounds are kept. Nothing is ever refuted this way.
Part of the trust base.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from layoutproof.ir.expr import Binary, Expr, Var
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.node import Node
from layoutproof.ir.subst import take_fresh
from layoutproof.ir.visit import free_variables, map_children, walk
from layoutproof.verify.values.canonical import comparable
from layoutproof.verify.values.classes import INFINITE, NAN, NEG_ZERO, Known
from layoutproof.verify.values.knowledge import Knowledge, always_computed, always_evaluated
from layoutproof.verify.values.licences import Licences
from layoutproof.verify.values.properties import AtLeast, AtMost, Given, NotInfinite, NotNan, NotNegativeZero
from layoutproof.verify.values.question import Question
from layoutproof.verify.values.terms import can_trap_below, literal
from layoutproof.verify.values.twins import Twins, untwinned


def without_shared_parts(question: Question, licences: Licences) -> Question | None:
    """A question whose proof under these licences proves the given one too; None where the sides share no operation."""
    if question.goal is not None:
        return None
    knowledge = Knowledge(question, licences)
    parts = _Parts(question, Twins(question, knowledge))
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
        given=(*question.given, *(g for part, var in parts.variables.items() for g in _facts(var, knowledge.known(parts.source[part])))),
        # A variable that is gone from the old side would count as computed everywhere.
        computed=_still(question, old) | {var for part, var in parts.variables.items() if part in always},
        twins=(*question.twins, *((var, parts.twins[part]) for part, var in parts.variables.items() if part in parts.twins)),
    )


def _still(question: Question, old: Expr) -> frozenset[Var]:
    return frozenset(v for v in question.computed if v in always_computed(question) or v in free_variables(old))


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
    """The largest parts of the new side that the old one has, up to order and the signs of zeros, and a variable for each."""

    def __init__(self, question: Question, twins: Twins) -> None:
        self._question = question
        self._twins = twins
        self._names = {v.name for v in question.variables}
        self.source: dict[Expr, Expr] = {}
        for part in _operations(question.old):
            self.source.setdefault(comparable(part), part)
        self.variables: dict[Expr, Var] = {}
        self.twins: dict[Expr, Var] = {}

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
        key = comparable(untwinned(self._question, expr))
        if key not in self.source or not self._twins.changes_zero_signs_only(expr):
            return None
        var = self.variables.get(key)
        if var is None:
            var = self.variables[key] = self._fresh(expr)
        if self._twins.changes_nothing(expr):
            return var
        if key not in self.twins:
            self.twins[key] = self._fresh(expr)
        return self.twins[key]

    def _fresh(self, expr: Expr) -> Var:
        name = take_fresh("part", self._names)
        return Var(name, expr.dtype)


def _operations(expr: Expr) -> Iterator[Expr]:
    return (node for node in walk(expr) if isinstance(node, Expr) and _is_operation(node))


def _is_operation(expr: Expr) -> bool:
    """Whether a part is worth a variable: arithmetic that may be hard, and traps nowhere."""
    return isinstance(expr, Binary | Call) and not expr.dtype.is_bool and expr.dtype.lanes == 1 and not can_trap_below(expr)
