"""Walking and rebuilding programs, from the nodes' own fields: one mechanism for every node type, present and future."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any, TypeVar

from layoutproof.ir.attributes import Attributes
from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.node import Node
from layoutproof.ir.stmt import Allocate, Block, BufferStore, DeclBuffer, For, Let, Stmt

N = TypeVar("N", bound=Node)

_FIELDS: dict[type, tuple[str, ...]] = {}


def _field_names(node_type: type) -> tuple[str, ...]:
    names = _FIELDS.get(node_type)
    if names is None:
        names = tuple(f.name for f in fields(node_type) if f.compare)
        _FIELDS[node_type] = names
    return names


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below, in the order of the fields; attribute values are not visited."""
    for name in _field_names(type(node)):
        value = getattr(node, name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, Node))


def walk(node: Node) -> Iterator[Node]:
    """`node` and everything below it, parents first. A function's buffer map is not part of its body: walk `func.body`."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(list(children(current))))


def map_children(node: N, rewrite: Callable[[Node], Node]) -> N:
    """`node` with `rewrite` applied to each direct child; the same object when nothing changed."""
    changes: dict[str, Any] = {}
    for name in _field_names(type(node)):
        value = getattr(node, name)
        if isinstance(value, Node):
            new = rewrite(value)
            if new is not value:
                changes[name] = new
        elif isinstance(value, tuple) and value and not isinstance(value, Attributes):
            items = tuple(rewrite(item) if isinstance(item, Node) else item for item in value)
            if any(a is not b for a, b in zip(items, value, strict=True)):
                changes[name] = items
    return replace(node, **changes) if changes else node


def rewrite_bottom_up(node: N, rewrite: Callable[[Node], Node]) -> N:
    """Children first, then the node itself through `rewrite`; a rewrite may return its argument."""

    def visit(current: Node) -> Node:
        return rewrite(map_children(current, visit))

    return visit(node)  # type: ignore[return-value]  # a rewrite keeps a node's category; builders check it when it does not


def free_variables(expr: Node) -> tuple[Var, ...]:
    """Variables in an expression, in order of first appearance (data variables and shapes of loaded buffers excluded)."""
    found: dict[Var, None] = {}
    stack: list[Node] = [expr]
    while stack:
        current = stack.pop()
        if isinstance(current, Var):
            found.setdefault(current)
        elif isinstance(current, BufferLoad):
            stack.extend(reversed(current.indices))
        else:
            stack.extend(reversed([c for c in children(current) if not isinstance(c, Buffer)]))
    return tuple(found)


def loads_in(node: Node) -> Iterator[BufferLoad]:
    """Every load below `node`, in evaluation order of the text."""
    return (n for n in walk(node) if isinstance(n, BufferLoad))


def stores_in(stmt: Stmt) -> Iterator[BufferStore]:
    """Every store below `stmt`, in program order (a block's init after its body's fields)."""
    return (n for n in walk(stmt) if isinstance(n, BufferStore))


def bound_variables(stmt: Stmt) -> Iterator[Var]:
    """Variables that statements below bind: loops, lets, blocks."""
    for node in walk(stmt):
        if isinstance(node, For | Let):
            yield node.var
        elif isinstance(node, Block):
            yield from (iter_var.var for iter_var in node.iter_vars)


def buffers_in(stmt: Stmt) -> tuple[Buffer, ...]:
    """Every distinct buffer that is declared, allocated, loaded or stored, in order of first appearance."""
    found: dict[Buffer, None] = {}
    for node in walk(stmt):
        if isinstance(node, Buffer):
            found.setdefault(node)
    return tuple(found)


def replace_buffers(node: N, mapping: dict[Buffer, Buffer]) -> N:
    """Every mention of a buffer replaced, its accesses' indices left as they are."""
    return rewrite_bottom_up(node, lambda n: mapping.get(n, n) if isinstance(n, Buffer) else n)


def is_declaration(stmt: Stmt) -> bool:
    """Whether the statement brings a buffer into scope."""
    return isinstance(stmt, Allocate | DeclBuffer)


def map_expressions(node: N, rewrite: Callable[[Expr], Expr]) -> N:
    """Every expression below rebuilt bottom-up through `rewrite`; variables that statements bind are left alone."""
    binders = (For, Let)

    def visit(current: Node) -> Node:
        rebuilt = map_children(current, visit)
        if isinstance(rebuilt, binders) and isinstance(current, binders) and rebuilt.var is not current.var:
            return replace(rebuilt, var=current.var)
        return rewrite(rebuilt) if isinstance(rebuilt, Expr) else rebuilt

    return visit(node)  # type: ignore[return-value]  # statements stay statements, expressions stay expressions
