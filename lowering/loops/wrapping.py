"""Wrapping indices: where overcompute would read past a buffer's end, the index taken modulo the extent (the roadmap's `% extent`)."""

from __future__ import annotations

from dataclasses import replace

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import Expr, widen
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import BufferStore, Stmt
from layoutproof.ir.visit import map_children
from layoutproof.verify.bounds import find_outside
from layoutproof.verify.facts import Facts
from layoutproof.verify.instances import AccessKind


def wrap_indices(func: PrimFunc) -> PrimFunc:
    """The function with every index of a load that is not known to stay inside taken modulo its extent; stores are left alone."""
    loose = _loose_axes(func)

    def visit(node: Node) -> Node:
        if isinstance(node, BufferLoad) and id(node) in loose:
            axes = loose[id(node)]
            indices = tuple(map(_expr, map(visit, node.indices)))
            return replace(node, indices=tuple(_wrapped(i, node, a) if a in axes else i for a, i in enumerate(indices)))
        return map_children(node, visit) if isinstance(node, Stmt | Expr) else node

    body = visit(func.body)
    assert isinstance(body, Stmt)
    return func.with_body(body)


def _wrapped(index: Expr, load: BufferLoad, axis: int) -> Expr:
    return index % widen(load.buffer.shape[axis], index.dtype)


def _expr(node: Node) -> Expr:
    assert isinstance(node, Expr)
    return node


def _loose_axes(func: PrimFunc) -> dict[int, set[int]]:
    """The axes of loads, by the load's identity, along which it may leave its buffer."""
    facts = Facts.of(func)
    found: dict[int, set[int]] = {}
    for access in facts.program.accesses:
        if access.kind is not AccessKind.READ or isinstance(access.node, BufferStore) or not access.checked:
            continue
        for axis, (index, extent) in enumerate(zip(access.indices, access.buffer.shape, strict=True)):
            if not find_outside(facts, access.scene, index, extent).is_empty:
                found.setdefault(id(access.node), set()).add(axis)
    return found
