"""The questions that the walk asks of integers: structure first, polynomials next, the engines last, each question once.

Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Compare, CompareOp, Expr, IntImm, Logical, LogicalOp, Not
from layoutproof.ir.visit import free_variables
from layoutproof.verify.facts import Facts
from layoutproof.verify.instances import Dim, Guard, Scene, Unknown
from layoutproof.verify.integers import below, differ
from layoutproof.verify.lockstep.scenes import is_speakable
from layoutproof.verify.radix import Polynomial
from layoutproof.verify.search import Search

_Key = tuple[tuple[Dim, ...], tuple[Guard, ...], tuple[Unknown, ...], tuple[Expr, ...]]


class Asking:
    """Questions about scenes, answered once each. `engines` are those that proved something."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.engines: dict[str, None] = {}
        self._symbols = set(facts.program.symbols)
        self._known: dict[_Key, bool] = {}

    def never(self, scene: Scene, *conditions: Expr) -> bool:
        """Whether the scene certainly has no instance where all conditions hold."""
        key = (scene.dims, scene.guards, scene.unknowns, conditions)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._never(scene, conditions)
        return known

    def _never(self, scene: Scene, conditions: Sequence[Expr]) -> bool:
        if any(not is_speakable(c) for c in conditions) or not self._is_closed(scene, conditions):
            return False
        found: Search = self.facts.search(scene, *conditions)
        if found.is_empty:
            self.engines.setdefault(found.engine)
        return found.is_empty

    def _is_closed(self, scene: Scene, conditions: Sequence[Expr]) -> bool:
        """Whether every variable means something at the scene."""
        told = self._symbols | {d.var for d in scene.dims} | {u.var for u in scene.unknowns}
        return all(v in told for c in conditions for v in free_variables(c))

    def is_of_symbols(self, expr: Expr, dtype: DType) -> bool:
        """Whether an expression is made of the program's symbols and constants alone, all of one type."""
        variables = free_variables(expr)
        return expr.dtype == dtype and set(variables) <= self._symbols and all(v.dtype == dtype for v in variables)

    def always(self, scene: Scene, condition: Expr) -> bool:
        """Whether the condition holds at every instance of the scene."""
        if isinstance(condition, Logical) and condition.op is LogicalOp.AND:
            return self.always(scene, condition.lhs) and self.always(scene, condition.rhs)
        return is_plain(scene, condition) or self.never(scene, Not(condition))

    def is_empty(self, scene: Scene) -> bool:
        """Whether nothing ever happens there."""
        return bool(scene.dims or scene.guards) and self.never(scene)

    def equal(self, scene: Scene, a: Expr, b: Expr) -> bool:
        """Whether two integers without lanes are the same at every instance, over the integers."""
        if a == b:
            return True
        if not (is_speakable(a) and is_speakable(b)):
            return False
        difference = Polynomial.of(a).plus(Polynomial.of(b), -1)
        number = difference.constant
        if number is not None:
            return number == 0
        return self.never(scene, differ(a, b))

    def is_below(self, scene: Scene, a: Expr, b: Expr | int) -> bool:
        """Whether `a < b` at every instance."""
        return self.always(scene, below(a, b))


def is_plain(scene: Scene, condition: Expr) -> bool:
    """Whether a condition is true as it stands: a constant, or a bound of a loop that is the loop's own."""
    match condition:
        case IntImm(value=value):
            return bool(value)
        case Compare(op=CompareOp.GE, lhs=lhs, rhs=IntImm(value=low)):
            return any(d.var == lhs and isinstance(d.start, IntImm) and d.start.value >= low for d in scene.dims)
        case Compare(op=CompareOp.LT, lhs=lhs, rhs=rhs):
            return any(d.var == lhs and isinstance(d.start, IntImm) and d.start.value == 0 and _same(d.extent, rhs) for d in scene.dims)
        case _:
            return False


def _same(a: Expr, b: Expr) -> bool:
    return a == b or (isinstance(a, IntImm) and isinstance(b, IntImm) and a.value <= b.value)
