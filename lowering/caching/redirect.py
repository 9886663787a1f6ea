"""Putting one buffer in the place of another in the accesses of a block: in its loads, or in its loads and stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from layoutproof.ir.buffer import Buffer, BufferLoad, BufferRegion, Range
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr, Var, const
from layoutproof.ir.intrinsics import Assume, OpaqueCall
from layoutproof.ir.node import Node
from layoutproof.ir.stmt import Block, BufferStore, Evaluate, MatchBuffer, Stmt
from layoutproof.ir.visit import children, map_children, walk
from layoutproof.lowering import codes

Indices = tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Redirection:
    """`new` for `old`; `indices` says where an access finds its cell, `stores` whether stores go there too.

    Where they do not, assumptions go on to speak of the old buffer: what is assumed of a copy does not follow by itself.
    """

    old: Buffer
    new: Buffer
    stores: bool
    indices: Callable[[Indices], Indices] = lambda indices: indices

    def statement(self, stmt: Stmt) -> Stmt:
        """The statement with its accesses redirected."""
        result = self._visit(stmt)
        assert isinstance(result, Stmt)
        return result

    def expression(self, expr: Expr) -> Expr:
        """The expression with its loads redirected."""
        result = self._visit(expr)
        assert isinstance(result, Expr)
        return result

    def _visit(self, node: Node) -> Node:
        if isinstance(node, BufferLoad) and node.buffer == self.old:
            return replace(node, buffer=self.new, indices=self._inner(node.indices))
        if isinstance(node, BufferStore):
            value = self.expression(node.value)
            if node.buffer == self.old and self.stores:
                return replace(node, buffer=self.new, indices=self._inner(node.indices), value=value)
            return replace(node, indices=self._expressions(node.indices), value=value)
        if is_assumption(node) and not self.stores:
            return node
        if isinstance(node, Block):
            inner = map_children(replace(node, reads=None, writes=None), self._visit)
            reads = None if node.reads is None else tuple(dict.fromkeys(map(self._region, node.reads)))
            writes = node.writes
            if writes is not None and self.stores:
                writes = tuple(dict.fromkeys(map(self._region, writes)))
            return replace(inner, reads=reads, writes=writes)
        return map_children(node, self._visit)

    def _expressions(self, expressions: Sequence[Expr]) -> Indices:
        return tuple(self.expression(e) for e in expressions)

    def _inner(self, indices: Indices) -> Indices:
        return self.indices(self._expressions(indices))

    def _region(self, region: BufferRegion) -> BufferRegion:
        """Where each range is one cell, the cell where it went; else, unless the indices stay, all of the new buffer."""
        if region.buffer != self.old:
            return region
        starts = tuple(r.start for r in region.ranges)
        if self.new.shape == self.old.shape and self.indices(starts) == starts:
            return replace(region, buffer=self.new)
        if all(r.extent == const(1, r.extent.dtype) for r in region.ranges):
            return BufferRegion(self.new, tuple(Range(i, const(1, i.dtype)) for i in self.indices(starts)))
        return BufferRegion(self.new, tuple(Range(const(0, e.dtype), e) for e in self.new.shape))


def is_assumption(node: Node) -> bool:
    """Whether a statement only assumes something."""
    return isinstance(node, Evaluate) and isinstance(node.value, Assume)


def accesses_of(node: Node, buffer: Buffer) -> Iterator[BufferLoad | BufferStore]:
    """The loads from a buffer and the stores to it, those in assumptions left out."""
    if is_assumption(node):
        return
    if isinstance(node, BufferLoad | BufferStore) and node.buffer == buffer:
        yield node
    for child in children(node):
        yield from accesses_of(child, buffer)


def check_visible(stmt: Stmt, buffer: Buffer) -> None:
    """Raise LayoutproofError where a statement uses the buffer's memory in a way that cannot be redirected."""
    for node in walk(stmt):
        if isinstance(node, MatchBuffer) and node.source.buffer == buffer:
            raise error(codes.ALIASES, f"{node.buffer.name} is a view of a region of {buffer.name} and would be left behind", node.span)
        if isinstance(node, OpaqueCall) and any(n == buffer.data for n in walk(node)):
            raise error(codes.POINTER_USE, f"{buffer.name} is handed to {node.function}, which cannot be given a copy", node.span)
    if any(_pointers(stmt, buffer.data)):
        raise error(codes.POINTER_USE, f"the pointer of {buffer.name} is used by itself, where its copy would not be seen", buffer.span)


def _pointers(node: Node, data: Var) -> Iterator[bool]:
    """One entry for each mention of the data variable outside buffers."""
    if isinstance(node, Buffer):
        return
    if node == data:
        yield True
    for child in children(node):
        yield from _pointers(child, data)
