"""Substitution of expressions for variables, and fresh names. Names are bound once on any path, so capture can be refused outright."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from layoutproof.ir.expr import Expr, Var, widen
from layoutproof.ir.node import Node
from layoutproof.ir.stmt import Block, For, Let, Stmt
from layoutproof.ir.visit import free_variables, map_children, walk

N = TypeVar("N", bound=Node)


def substitute(node: N, values: Mapping[Var, Expr]) -> N:
    """`node` with every free occurrence of the variables replaced, in buffer shapes too; integers are cast to the variable's width.

    Raises ValueError where a statement below binds a variable that is replaced or that stands free in a value (capture).
    """
    if not values:
        return node
    bad = set(values) | {v for value in values.values() for v in free_variables(value)}
    done: dict[Node, Node] = {}

    def visit(current: Node) -> Node:
        if isinstance(current, Var):
            value = values.get(current)
            return current if value is None else widen(value, current.dtype)
        if isinstance(current, For | Let) and current.var in bad:
            raise ValueError(f"{current.var.name} is bound inside the statement it is substituted in")
        if isinstance(current, Block) and any(iter_var.var in bad for iter_var in current.iter_vars):
            raise ValueError(f"block {current.name} binds a variable that is substituted in it")
        if not isinstance(current, Expr):
            return map_children(current, visit)
        result = done.get(current)
        if result is None:
            result = done[current] = map_children(current, visit)
        return result

    return visit(node)  # type: ignore[return-value]  # statements stay statements, expressions stay expressions


def names_in(stmt: Stmt) -> set[str]:
    """Every name of a variable, buffer or block that a statement mentions."""
    found: set[str] = set()
    for node in walk(stmt):
        name = getattr(node, "name", None)
        if isinstance(name, str):
            found.add(name)
    return found


def fresh(name: str, taken: Iterable[str]) -> str:
    """`name`, or `name_1`, `name_2`, ... : the first that is not taken."""
    used = taken if isinstance(taken, set) else set(taken)
    if name not in used:
        return name
    number = 1
    while f"{name}_{number}" in used:
        number += 1
    return f"{name}_{number}"


def take_fresh(name: str, taken: set[str]) -> str:
    """As `fresh`, and the name is taken from then on."""
    found = fresh(name, taken)
    taken.add(found)
    return found
