"""What a statement computes on a set of its instances, as an expression over loaded values alone.

Conditions on indices are decided, by splitting the set where they hold on a part of it; other index arithmetic becomes a constant
where it is one on the set, and otherwise a variable, the same one for two expressions that agree there. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from layoutproof.ir.expr import FALSE, TRUE, Compare, Expr, IfThenElseExpr, IntImm, Logical, LogicalOp, Not, Select, Var
from layoutproof.ir.node import Node
from layoutproof.ir.visit import children, free_variables, map_children
from layoutproof.verify.instances import is_index_like
from layoutproof.verify.isl.encode import NotQuasiAffine
from layoutproof.verify.isl.pairing import Region


def decided(region: Region, values: frozenset[Var], *exprs: Expr) -> Iterator[tuple[Region, tuple[Expr, ...]]]:
    """The expressions on the parts of `region` where each condition on indices has one truth value, which is put in its place.

    `values` are the variables that stand for loaded values. A condition that integer sets cannot say stays as it is.
    """
    stack: list[tuple[Region, tuple[Expr, ...], frozenset[Expr]]] = [(region, exprs, frozenset())]
    while stack:
        current, terms, undecidable = stack.pop()
        if current.is_empty:
            continue
        condition = next((c for term in terms for c in _index_conditions(term, values) if c not in undecidable), None)
        if condition is None:
            yield current, terms
            continue
        try:
            inside, outside = current.split(condition)
        except NotQuasiAffine:
            stack.append((current, terms, undecidable | {condition}))
            continue
        stack.append((outside, tuple(folded(_replaced(t, condition, FALSE)) for t in terms), undecidable))
        stack.append((inside, tuple(folded(_replaced(t, condition, TRUE)) for t in terms), undecidable))


def _index_conditions(expr: Expr, values: frozenset[Var]) -> Iterator[Expr]:
    """The largest truth values in an expression that speak of indices only."""
    stack: list[Node] = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, Compare | Logical | Not) and _is_index_condition(node, values):
            yield node
            continue
        stack.extend(children(node))


def _is_index_condition(expr: Expr, values: frozenset[Var]) -> bool:
    if expr.dtype.lanes != 1:
        return False
    match expr:
        case Compare(lhs=lhs, rhs=rhs):
            return all(is_index_like(side) or side.dtype.is_bool for side in (lhs, rhs)) and not _loads(expr, values)
        case Logical(lhs=lhs, rhs=rhs):
            return _is_index_condition(lhs, values) and _is_index_condition(rhs, values)
        case Not(operand=operand):
            return _is_index_condition(operand, values)
        case IntImm():
            return True
        case _:
            return False


def _loads(expr: Expr, values: frozenset[Var]) -> bool:
    return any(v in values for v in free_variables(expr))


def _replaced(expr: Expr, what: Expr, by: Expr) -> Expr:
    def visit(node: Node) -> Node:
        return by if node == what else map_children(node, visit)

    result = visit(expr)
    assert isinstance(result, Expr)
    return result


def folded(expr: Expr) -> Expr:
    """The expression with choices and connectives of known truth values resolved."""

    def visit(node: Node) -> Node:
        return _fold(map_children(node, visit))

    result = visit(expr)
    assert isinstance(result, Expr)
    return result


def _fold(node: Node) -> Node:
    match node:
        case Select(condition=IntImm(value=value), then=then, otherwise=otherwise):
            return then if value else otherwise
        case IfThenElseExpr(condition=IntImm(value=value), then=then, otherwise=otherwise):
            return then if value else otherwise
        case Not(operand=IntImm(value=value)):
            return FALSE if value else TRUE
        case Logical(op=op, lhs=IntImm(value=value), rhs=other) | Logical(op=op, lhs=other, rhs=IntImm(value=value)):
            neutral = bool(value) == (op is LogicalOp.AND)
            return other if neutral else (TRUE if value else FALSE)
        case _:
            return node


@dataclass(slots=True)
class Leaves:
    """The index arithmetic of one question, with the variable that each stands for on a region."""

    region: Region
    values: frozenset[Var]
    known: list[tuple[Expr, Var]] = field(default_factory=list)

    def abstract(self, expr: Expr) -> Expr:
        """The expression with every largest part that speaks of indices only replaced."""

        def visit(node: Node) -> Node:
            if isinstance(node, Expr) and not isinstance(node, IntImm) and is_index_like(node) and not _loads(node, self.values):
                return self._leaf(node)
            return map_children(node, visit)

        result = visit(expr)
        assert isinstance(result, Expr)
        return result

    def _leaf(self, expr: Expr) -> Expr:
        if not free_variables(expr):
            return expr
        for other, variable in self.known:
            if other == expr:
                return variable
        try:
            # Index arithmetic in a value wraps: it is the integer that it looks like only where nothing leaves its type.
            if not self.region.fits(expr):
                return expr
            number = self.region.constant(expr)
            if number is not None and expr.dtype.min_int <= number <= expr.dtype.max_int:
                return IntImm(number, expr.dtype)
            for other, variable in self.known:
                if other.dtype == expr.dtype and self.region.always_equal(other, expr):
                    self.known.append((expr, variable))
                    return variable
        except NotQuasiAffine:
            return expr
        variable = Var(f"index{len(self.known)}'", expr.dtype)
        self.known.append((expr, variable))
        return variable
