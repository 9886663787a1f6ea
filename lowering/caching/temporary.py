"""Temporaries: buffers that a function allocates, and so may give another shape without telling anybody."""

from __future__ import annotations

from dataclasses import replace

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import AXIS_SEPARATORS, LAYOUT, LAYOUT_TRANSFORMATIONS, PrimFunc
from layoutproof.ir.stmt import Allocate, Attributes, Block, Stmt
from layoutproof.ir.visit import fresh, map_children, walk
from layoutproof.lowering import codes
from layoutproof.lowering.find import find_buffer
from layoutproof.lowering.layout import check_alone
from layoutproof.lowering.loops.nest import names_of


def find_temporary(func: PrimFunc, name: str) -> tuple[Buffer, Allocate | Block]:
    """A buffer, and the statement that allocates it.

    Raises LayoutproofError where there is none of that name, where it is a parameter, where other buffers or calls see its memory, and
    where a layout transform of it waits in an attribute.
    """
    buffer = find_buffer(func, name)
    if any(b.data == buffer.data for b in func.buffers):
        message = f"{name} is memory of the caller; only a buffer that the function allocates can be given another shape"
        raise error(codes.NOT_TEMPORARY, message, buffer.span)
    check_alone(func, buffer)
    waiting = func.attrs.get(LAYOUT_TRANSFORMATIONS)
    if isinstance(waiting, Attributes) and buffer.data.name in waiting:
        message = f"a layout transform of {name} waits in the attribute {LAYOUT_TRANSFORMATIONS}, and it is about the shape as it is"
        raise error(codes.NOT_TEMPORARY, message, buffer.span, help="apply_buffer_transforms comes first")
    for node in walk(func.body):
        if (isinstance(node, Allocate) and node.buffer == buffer) or (isinstance(node, Block) and buffer in node.alloc_buffers):
            return buffer, node
    raise error(codes.NOT_TEMPORARY, f"nothing in {func.name} allocates {name}", buffer.span)


def reshaped(func: PrimFunc, buffer: Buffer, shape: tuple[Expr, ...], separators: tuple[int, ...]) -> Buffer:
    """The buffer with another shape. Memory that has a layout record gets a new name: what the record says is no longer so."""
    records = func.attrs.get(LAYOUT)
    recorded = isinstance(records, Attributes) and buffer.data.name in records
    data = Var(fresh(f"{buffer.data.name}_1", names_of(func)), HANDLE) if recorded else buffer.data
    return replace(buffer, shape=shape, data=data, axis_separators=separators)


def reallocated(func: PrimFunc, old: Buffer, new: Buffer) -> PrimFunc:
    """The function with `new` allocated instead of `old`, and what attributes say of its memory; accesses stay what they are."""

    def visit(node: Node) -> Node:
        if isinstance(node, Allocate) and node.buffer == old:
            return replace(node, buffer=new)
        if isinstance(node, Block) and old in node.alloc_buffers:
            return replace(node, alloc_buffers=tuple(new if b == old else b for b in node.alloc_buffers))
        return map_children(node, visit) if isinstance(node, Stmt) else node

    body = visit(func.body)
    assert isinstance(body, Stmt)
    attrs = _without(func.attrs, LAYOUT, old.data.name) if old.data != new.data else func.attrs
    separators = attrs.get(AXIS_SEPARATORS)
    if isinstance(separators, Attributes) and old.data.name in separators:
        attrs = attrs.with_value(AXIS_SEPARATORS, separators.without(old.data.name).with_value(new.data.name, new.axis_separators))
    return replace(func, body=body, attrs=attrs)


def _without(attrs: Attributes, key: str, name: str) -> Attributes:
    """The attributes without one entry of a table; an empty table is left out."""
    table = attrs.get(key)
    if not isinstance(table, Attributes) or name not in table:
        return attrs
    rest = table.without(name)
    return attrs.with_value(key, rest) if rest else attrs.without(key)
