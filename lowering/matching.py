"""Applying a rule: matching its left side against an expression, and building its right side from what its variables stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from layoutproof.ir.dtype import INT32, DType
from layoutproof.ir.expr import Binary, Compare, Expr, IntImm, Logical, Not, Var, const, widen
from layoutproof.ir.node import Node
from layoutproof.ir.rewrite import Rule

Binding = Mapping[str, Expr]


def try_match(rule: Rule, expr: Expr) -> dict[str, Expr] | None:
    """What the rule's variables stand for in `expr`, types included; None where the left side has another form."""
    binding: dict[str, Expr] = {}
    return binding if _matches(rule.lhs, expr, {v.name for v in rule.variables}, binding) else None


def _matches(pattern: Node, node: Node, variables: set[str], binding: dict[str, Expr]) -> bool:
    if isinstance(pattern, Var) and pattern.name in variables:
        if not isinstance(node, Expr) or node.dtype != pattern.dtype:
            return False
        return binding.setdefault(pattern.name, node) == node
    if type(pattern) is not type(node):
        return False
    for field in fields(pattern):
        if not field.compare:
            continue
        wanted, found = getattr(pattern, field.name), getattr(node, field.name)
        if isinstance(wanted, Node):
            if not isinstance(found, Node) or not _matches(wanted, found, variables, binding):
                return False
        elif wanted != found:
            return False
    # A float constant's fields compare as numbers, under which 0.0 is -0.0; its own equality does not.
    return bool(pattern == node) if not _has_children(pattern) else True


def _has_children(node: Node) -> bool:
    return any(isinstance(getattr(node, f.name), Node) for f in fields(node) if f.compare)


def instantiate(expr: Expr, binding: Binding, dtype: DType) -> Expr:
    """A side of an index rule with its variables replaced and its placeholder integers given the type `dtype`.

    Raises ValueError for a constant that does not fit.
    """
    if isinstance(expr, Var):
        return widen(binding[expr.name], dtype) if expr.dtype == INT32 else binding[expr.name]
    if isinstance(expr, IntImm):
        return const(expr.value, dtype) if expr.dtype == INT32 else expr
    if isinstance(expr, Binary):
        return Binary(expr.op, instantiate(expr.lhs, binding, dtype), instantiate(expr.rhs, binding, dtype))
    if isinstance(expr, Compare):
        return Compare(expr.op, instantiate(expr.lhs, binding, dtype), instantiate(expr.rhs, binding, dtype))
    if isinstance(expr, Logical):
        return Logical(expr.op, instantiate(expr.lhs, binding, dtype), instantiate(expr.rhs, binding, dtype))
    if isinstance(expr, Not):
        return Not(instantiate(expr.operand, binding, dtype))
    raise TypeError(f"{type(expr).__name__} in an index rule")


def replaced(rule: Rule, binding: Binding) -> Expr:
    """The right side of a value rule for a binding of `try_match`."""
    return _substituted(rule.rhs, binding, {v.name for v in rule.variables})


def _substituted(expr: Expr, binding: Binding, variables: set[str]) -> Expr:
    if isinstance(expr, Var) and expr.name in variables:
        return binding[expr.name]
    if isinstance(expr, Logical):
        return Logical(expr.op, _substituted(expr.lhs, binding, variables), _substituted(expr.rhs, binding, variables))
    return expr
