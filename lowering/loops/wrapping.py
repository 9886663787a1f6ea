"""Wrapping indices: where overcompute would leave a buffer, the index taken modulo the extent (the roadmap's `% extent`)."""

from __future__ import annotations

from dataclasses import replace

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import Expr, widen
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import BufferStore, Stmt
from layoutproof.ir.visit import map_children
from layoutproof.verify.faults.bounds import find_outside
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.program.instances import AccessKind


def wrap_indices(func: PrimFunc) -> PrimFunc:
    """The function with every index of an access that is not known to stay inside taken modulo its extent.

    A store that is wrapped hits a cell that is somebody's: that it puts back what is there is for the checker to say.
    """
    loose = _loose_axes(func)

    def visit(node: Node) -> Node:
        if isinstance(node, BufferLoad | BufferStore) and id(node) in loose:
            axes = loose[id(node)]
            indices = tuple(map(_expr, map(visit, node.indices)))
            wrapped = tuple(_wrapped(i, node, a) if a in axes else i for a, i in enumerate(indices))
            if isinstance(node, BufferLoad):
                return replace(node, indices=wrapped)
            return replace(node, indices=wrapped, value=_expr(visit(node.value)))
        return map_children(node, visit) if isinstance(node, Stmt | Expr) else node

    body = visit(func.body)
    assert isinstance(body, Stmt)
    return func.with_body(body)


def _wrapped(index: Expr, access: BufferLoad | BufferStore, axis: int) -> Expr:
    return index % widen(access.buffer.shape[axis], index.dtype)


def _expr(node: Node) -> Expr:
    assert isinstance(node, Expr)
    return node


def _loose_axes(func: PrimFunc) -> dict[int, set[int]]:
    """The axes of loads and stores, by identity, along which they may leave their buffers."""
    facts = Facts.of(func)
    found: dict[int, set[int]] = {}
    for access in facts.program.accesses:
        wanted = AccessKind.WRITE if isinstance(access.node, BufferStore) else AccessKind.READ
        if access.kind is not wanted:
            continue
        for axis, (index, extent) in enumerate(zip(access.indices, access.buffer.shape, strict=True)):
            if not find_outside(facts, access.scene, index, extent).is_empty:
                found.setdefault(id(access.node), set()).add(axis)
    return found
