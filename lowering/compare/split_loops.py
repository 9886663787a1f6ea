"""A loop over a multiple of a size whose index is only divided by that size, `v // n` and `v % n` for v below 32*n, as
two loops, of which these are the indices: integer sets cannot represent a quotient by a size.

Iterations keep their order, and their number: if n is not positive, neither loop runs. The multiple has to be a
literal, since two negative factors would have a positive product.
"""

from __future__ import annotations

from dataclasses import replace

from layoutproof.ir.expr import Binary, Expr, IntImm, Var, const
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import For, ForKind, Stmt
from layoutproof.ir.visit import (
    bound_variables,
    descend,
    free_variables,
    mapped,
    names_in,
    rewrite_bottom_up,
    substitute,
    take_fresh,
    walk,
)

_KINDS = (ForKind.SERIAL, ForKind.PARALLEL)


def with_split_loops(func: PrimFunc) -> tuple[PrimFunc, tuple[Expr, ...]]:
    """The function with such loops in two, and the extents that were split; the function itself if there are none.

    The extents are assumed not to overflow their types, as of any index arithmetic of sizes alone.
    """
    if not any(isinstance(node, For) and _multiple(node) is not None for node in walk(func.body)):
        return func, ()
    splitter = _Splitter(func)
    body = trampoline(splitter.visit, func.body)
    assert isinstance(body, Stmt)
    return (func.with_body(body), tuple(splitter.extents)) if splitter.extents else (func, ())


def _multiple(loop: For) -> tuple[IntImm, Var] | None:
    """The literal and the size of which the extent of a loop from 0 is the product."""
    match loop:
        case For(start=IntImm(value=0), extent=Binary(op=BinaryOp.MUL, lhs=a, rhs=b), kind=kind) if kind in _KINDS:
            number, size = (a, b) if isinstance(a, IntImm) else (b, a)
            if isinstance(number, IntImm) and number.value > 0 and isinstance(size, Var):
                return number, size
        case _:
            pass
    return None


class _Splitter:
    def __init__(self, func: PrimFunc) -> None:
        self.names = names_in(func.body) | {param.name for param in func.params}
        self.names |= {name for buffer in func.buffers for name in (buffer.name, buffer.data.name)}
        self.bound = frozenset(bound_variables(func.body))
        self.extents: list[Expr] = []

    def visit(self, node: Node) -> Node | Steps[Node, Node]:
        """A statement, its loops split wherever that is possible."""
        if isinstance(node, For):
            node = self._loop(node)
        return mapped(node) if isinstance(node, Stmt) else node

    def _loop(self, loop: For) -> For:
        found = _multiple(loop)
        if found is None or found[1] in self.bound:
            return loop
        number, size = found
        outer = Var(take_fresh(f"{loop.var.name}_outer", self.names), loop.var.dtype)
        inner = Var(take_fresh(f"{loop.var.name}_inner", self.names), loop.var.dtype)
        parts = {BinaryOp.FLOORDIV: outer, BinaryOp.FLOORMOD: inner}

        def divided(node: Node) -> Node | Steps[Node, Node]:
            if isinstance(node, Binary) and node.op in parts and node.rhs == size and _plain(node.lhs) == loop.var:
                return parts[node.op]
            return descend(node, divided)

        body = trampoline(divided, _without_single_loops(loop.body))
        assert isinstance(body, Stmt)
        if loop.var in {v for node in walk(body) if isinstance(node, Expr) for v in free_variables(node)}:
            return loop
        self.extents.append(loop.extent)
        zero = const(0, loop.var.dtype)
        return replace(
            loop, var=outer, extent=number, body=replace(loop, var=inner, start=zero, extent=size, body=body)
        )


def _without_single_loops(stmt: Stmt) -> Stmt:
    """A statement with the start of each loop of one iteration in the place of its index."""

    def visit(node: Node) -> Node:
        if isinstance(node, For) and node.extent == const(1, node.extent.dtype) and isinstance(node.start, IntImm):
            return replace(node, body=substitute(node.body, {node.var: node.start}))
        return node

    return rewrite_bottom_up(stmt, visit)


def _plain(expr: Expr) -> Expr:
    """A sum without zeros."""
    match expr:
        case Binary(op=BinaryOp.ADD, lhs=a, rhs=IntImm(value=0)) | Binary(op=BinaryOp.ADD, lhs=IntImm(value=0), rhs=a):
            return _plain(a)
        case Binary(op=BinaryOp.ADD, lhs=a, rhs=b):
            first, second = _plain(a), _plain(b)
            return _plain(first + second) if (first, second) != (a, b) else expr
        case _:
            return expr
