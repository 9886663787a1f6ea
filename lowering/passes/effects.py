"""The effects of expressions and statements: asked by passes before they move or drop something."""

from __future__ import annotations

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.expr import TRUE, Expr, Var
from layoutproof.ir.intrinsics import OpaqueCall
from layoutproof.ir.node import Node
from layoutproof.ir.stmt import Block, BufferStore, IfThenElse, Stmt
from layoutproof.ir.visit import nodes_of, walk


def conditions_of(stmt: Stmt) -> tuple[Expr, ...]:
    """The conditions under which the statement runs what is in it."""
    if isinstance(stmt, IfThenElse):
        return (stmt.condition,)
    return (stmt.where,) if isinstance(stmt, Block) and stmt.where != TRUE else ()


def is_pure(*expressions: Expr) -> bool:
    """Whether expressions read no memory and call nothing opaque."""
    return not any(isinstance(node, BufferLoad | OpaqueCall) for e in expressions for node in walk(e))


def data_read(node: Node) -> frozenset[Var]:
    """The data variables that are loaded from below a node, or handed to an opaque call."""
    found = {n.buffer.data for n in nodes_of(node, BufferLoad)}
    return frozenset(found | _handed_over(node))


def data_written(node: Node) -> frozenset[Var]:
    """The data variables that are stored to below a node, or handed to an opaque call."""
    found = {n.buffer.data for n in nodes_of(node, BufferStore)}
    return frozenset(found | _handed_over(node))


def _handed_over(node: Node) -> set[Var]:
    calls = (n for n in nodes_of(node, OpaqueCall))
    found: set[Var] = set()
    for call in calls:
        for below in walk(call):
            if isinstance(below, Var) and below.dtype.kind.value == "handle":
                found.add(below)
            elif isinstance(below, BufferLoad):
                found.add(below.buffer.data)
    return found


def uses_buffer(node: Node, buffer: Buffer) -> bool:
    """Whether a load or store below goes through this very view."""
    return any(isinstance(n, BufferLoad | BufferStore) and n.buffer == buffer for n in walk(node))
