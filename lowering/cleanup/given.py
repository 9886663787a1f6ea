"""What is left of a statement where the truth of some conditions is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from layoutproof.ir.expr import Compare, Expr, IfThenElseExpr, IntImm, Logical, Not, Select, Var, const
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.node import Node
from layoutproof.ir.stmt import Block, BufferStore, Evaluate, Seq, Stmt, seq
from layoutproof.ir.visit import map_children, substitute
from layoutproof.lowering.cleanup.rebuild import tidied
from layoutproof.lowering.cleanup.stores import Origins
from layoutproof.lowering.index_simplify import apply_value_rules


@dataclass(frozen=True, slots=True)
class Given:
    """Rebuilds statements in which conditions have known truth values. `truths` speaks of variables from outside of them."""

    truths: Mapping[Expr, bool]
    origins: Origins

    def statement(self, stmt: Stmt, bound: Mapping[Var, Expr]) -> Stmt:
        """`stmt`, decided; `bound` says what variables of blocks stand for. Assumptions stay as they are written."""
        match stmt:
            case Seq(body=body):
                return seq(*(self.statement(part, bound) for part in body))
            case Evaluate(value=Assume()):
                return stmt
            case Block(iter_vars=iter_vars):
                inner = {**bound, **{i.var: substitute(i.binding, bound) for i in iter_vars}}
                return tidied(map_children(stmt, lambda node: self._below(node, inner)), stmt)
            case BufferStore():
                new_store = map_children(stmt, lambda node: self._below(node, bound))
                return stmt if new_store is stmt else self.origins.same(new_store, stmt)
            case _:
                return tidied(map_children(stmt, lambda node: self._below(node, bound)), stmt)

    def _below(self, node: Node, bound: Mapping[Var, Expr]) -> Node:
        if isinstance(node, Stmt):
            return self.statement(node, bound)
        return self.expression(node, bound) if isinstance(node, Expr) else node

    def expression(self, expr: Expr, bound: Mapping[Var, Expr]) -> Expr:
        """`expr`, decided."""
        if expr.dtype.is_bool and expr.dtype.lanes == 1 and not isinstance(expr, IntImm):
            truth = self.truths.get(substitute(expr, bound))
            if truth is not None:
                return const(truth)
        new = map_children(expr, lambda node: self._below(node, bound))
        return apply_value_rules(new) if new is not expr and isinstance(new, Logical | Not | IfThenElseExpr | Select | Compare) else new
