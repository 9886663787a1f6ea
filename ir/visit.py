"""Walking, rebuilding and substituting in programs by the nodes' own fields, one mechanism for all node types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from itertools import chain
from typing import Any, TypeVar

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.expr import Expr, IfThenElseExpr, Logical, Var, widen
from layoutproof.ir.node import Node, Steps, field_names, trampoline
from layoutproof.ir.stmt import (
    Block,
    BufferStore,
    For,
    Let,
    Seq,
    Stmt,
    seq,
)

N = TypeVar("N", bound=Node)

_GIVEN: dict[type, tuple[str, ...]] = {}


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below, in the order of the fields; attribute values are not visited."""
    below = node._below
    if below is not None:
        return below
    found: list[Node] = []
    for name in field_names(type(node)):
        value = getattr(node, name)
        if isinstance(value, Node):
            found.append(value)
        elif isinstance(value, tuple):
            found += [item for item in value if isinstance(item, Node)]
    below = tuple(found)
    object.__setattr__(node, "_below", below)
    return below


def walk(node: Node) -> Iterator[Node]:
    """`node` and all nodes below it, parents first. A function's body has no buffer map: walk `func.body`."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        below = current._below
        if below is None:
            below = children(current)
        if below:
            stack += below[::-1]


_KINDS: dict[frozenset[type], frozenset[type]] = {}


def kinds_in(node: Node) -> frozenset[type]:
    """The types of the nodes that `walk` goes over, and what marks them; found once for each object."""
    if node._kinds is not None:
        return node._kinds
    stack = [node]
    while stack:
        current = stack[-1]
        below = children(current) if current._kinds is None else ()
        # Sets are one object where they are equal, so that those of many statements are few.
        kinds = {child._kinds for child in below}
        if None in kinds:
            stack += [child for child in below if child._kinds is None]
            continue
        stack.pop()
        if current._kinds is None:
            own = frozenset((type(current), *current._marks()))
            found = own.union(*(each for each in kinds if each is not None))
            object.__setattr__(current, "_kinds", _KINDS.setdefault(found, found))
    assert node._kinds is not None
    return node._kinds


def holds_any(node: Node, *types: type[Node]) -> bool:
    """Whether `walk` goes over a node of one of these types, which have no subtypes."""
    return not kinds_in(node).isdisjoint(types)


def nodes_of(node: Node, *types: type[N]) -> Iterator[N]:
    """The nodes of these types, which have no subtypes, in the order of `walk`; what has none of them is left out."""
    stack = [node]
    while stack:
        current = stack.pop()
        if not kinds_in(current).isdisjoint(types):
            if type(current) in types:
                yield current  # type: ignore[misc]  # its type is one of those
            stack += children(current)[::-1]


def map_children(node: N, rewrite: Callable[[Node], Node]) -> N:
    """`node` with `rewrite` applied to each direct child; the same object when nothing changed."""
    if not children(node):
        return node
    changes: dict[str, Any] = {}
    for name in field_names(type(node)):
        value = getattr(node, name)
        if isinstance(value, Node):
            new = rewrite(value)
            if new is not value:
                changes[name] = new
        elif isinstance(value, tuple) and value:
            items = tuple(rewrite(item) if isinstance(item, Node) else item for item in value)
            if any(a is not b for a, b in zip(items, value, strict=True)):
                changes[name] = items
    return _with(node, changes) if changes else node


def mapped(node: N, given: Callable[[Node], Any] = lambda child: child) -> Steps[Any, Any]:
    """As `map_children`, as a step of a `trampoline`: it asks for each direct child, by what is `given` for it. A
    sequence stays flat.
    """
    changes: dict[str, Any] = {}
    for name in field_names(type(node)):
        value = getattr(node, name)
        if isinstance(value, Node):
            new = yield given(value)
            if new is not value:
                changes[name] = new
        elif isinstance(value, tuple) and value:
            items = []
            for item in value:
                items.append((yield given(item)) if isinstance(item, Node) else item)
            if any(a is not b for a, b in zip(items, value, strict=True)):
                changes[name] = tuple(items)
    if changes and isinstance(node, Seq):
        return seq(*changes["body"])
    return _with(node, changes) if changes else node


def _same(node: Any) -> Any:
    return node


def descend(
    node: Node, visit: Callable[[Node], Node | Steps[Node, Node]], finish: Callable[[Any], Node] = _same
) -> Node | Steps[Node, Node]:
    """`node` with each direct child through `visit`, then through `finish`: at once where no statement stands in it,
    else as a step of a `trampoline`.
    """
    if isinstance(node, Expr | Buffer):
        return finish(map_children(node, visit))  # type: ignore[arg-type]  # these hold no statements
    return _descending(node, finish)


def _descending(node: Node, finish: Callable[[Any], Node]) -> Steps[Node, Node]:
    return finish((yield from mapped(node)))


def _with(node: N, changes: dict[str, Any]) -> N:
    """What `dataclasses.replace` makes, which looks at every field anew each time."""
    node_type = type(node)
    names = _GIVEN.get(node_type)
    if names is None:
        names = _GIVEN[node_type] = tuple(f.name for f in fields(node_type) if f.init)
    return node_type(**{name: changes[name] if name in changes else getattr(node, name) for name in names})


def rewrite_bottom_up(node: N, rewrite: Callable[[Node], Node]) -> N:
    """Children first, then the node itself through `rewrite`; a rewrite may return its argument."""

    def visit(current: Node) -> Node | Steps[Node, Node]:
        return descend(current, visit, rewrite)

    root: Node = node
    return trampoline(visit, root)  # type: ignore[return-value]  # a rewrite keeps a node's category; builders check it when it does not


def free_variables(expr: Node) -> tuple[Var, ...]:
    """Variables in an expression in order of first appearance, without data variables and shapes of loaded buffers."""
    if expr._free is not None:
        return expr._free
    found: dict[Var, None] = {}
    stack: list[Node] = [expr]
    while stack:
        current = stack.pop()
        if current._free is not None:
            found |= dict.fromkeys(current._free)
        elif isinstance(current, Var):
            found.setdefault(current)
        elif isinstance(current, BufferLoad):
            stack.extend(reversed(current.indices))
        else:
            stack.extend(reversed([c for c in children(current) if not isinstance(c, Buffer)]))
    result = tuple(found)
    object.__setattr__(expr, "_free", result)
    return result


def loads_in(node: Node) -> Iterator[BufferLoad]:
    """Every load below `node`, in evaluation order of the text."""
    return nodes_of(node, BufferLoad)


def stores_in(stmt: Stmt) -> Iterator[BufferStore]:
    """Every store below `stmt`, in program order (a block's init before its body)."""
    stack: list[Stmt] = [stmt]
    while stack:
        current = stack.pop()
        if isinstance(current, BufferStore):
            yield current
        else:
            stack += reversed([child for child in children(current) if isinstance(child, Stmt)])


def loops_of_stores(stmt: Stmt) -> list[tuple[For, ...]]:
    """The loops around every store, outermost first, in the order of `stores_in`."""
    found: list[tuple[For, ...]] = []
    stack: list[tuple[Stmt, tuple[For, ...]]] = [(stmt, ())]
    while stack:
        node, loops = stack.pop()
        if isinstance(node, BufferStore):
            found.append(loops)
        inside = (*loops, node) if isinstance(node, For) else loops
        stack += reversed([(child, inside) for child in children(node) if isinstance(child, Stmt)])
    return found


def bound_variables(stmt: Stmt) -> Iterator[Var]:
    """Variables that statements below bind: loops, lets, blocks."""
    for node in walk(stmt):
        if isinstance(node, For | Let):
            yield node.var
        elif isinstance(node, Block):
            yield from (iter_var.var for iter_var in node.iter_vars)


def buffers_in(stmt: Stmt) -> tuple[Buffer, ...]:
    """Every distinct buffer that is declared, allocated, loaded or stored, in order of first appearance."""
    if stmt._buffers is not None:
        return stmt._buffers
    found: dict[Buffer, None] = {}
    stack: list[Node] = [stmt]
    while stack:
        node = stack.pop()
        if isinstance(node, Seq):
            # Statements of a long program are in its next version, too. The last is gone into here: it may go on for
            # long, since what follows an allocation or a let stands in it.
            found.update(dict.fromkeys(chain.from_iterable(map(_buffers_of, node.body[:-1]))))
            stack += node.body[-1:]
            continue
        if isinstance(node, Buffer):
            if node in found:
                continue  # and what is below it
            found[node] = None
        stack += children(node)[::-1]
    return tuple(found)


def _buffers_of(part: Stmt) -> tuple[Buffer, ...]:
    if part._buffers is None:
        object.__setattr__(part, "_buffers", buffers_in(part))
    return part._buffers or ()


def replace_buffers(node: N, mapping: dict[Buffer, Buffer]) -> N:
    """Every mention of a buffer replaced, its accesses' indices left as they are."""
    return rewrite_bottom_up(node, lambda n: mapping.get(n, n) if isinstance(n, Buffer) else n)


def map_expressions(node: N, rewrite: Callable[[Expr], Expr]) -> N:
    """Every expression below rebuilt bottom-up through `rewrite`; variables that statements bind are left alone."""
    binders = (For, Let)

    def visit(current: Node) -> Node | Steps[Node, Node]:
        return expression(current) if isinstance(current, Expr | Buffer) else inside(current)

    def inside(current: Node) -> Steps[Node, Node]:
        rebuilt: Node = yield from mapped(current)
        if isinstance(rebuilt, binders) and isinstance(current, binders) and rebuilt.var is not current.var:
            return replace(rebuilt, var=current.var)
        return rebuilt

    def expression(current: Node) -> Node:
        rebuilt = map_children(current, expression)
        return rewrite(rebuilt) if isinstance(rebuilt, Expr) else rebuilt

    root: Node = node
    return trampoline(visit, root)  # type: ignore[return-value]  # statements stay statements, expressions stay expressions


def substitute(node: N, values: Mapping[Var, Expr]) -> N:
    """`node` with every free occurrence of the variables replaced, in buffer shapes too; integers are cast to the
    variable's width.

    Raises ValueError where a statement below binds a variable that is replaced or that stands free in a value
    (capture).
    """
    if not values:
        return node
    bad: set[Var] = set()
    if not isinstance(node, Expr):
        bad = set(values) | {v for value in values.values() for v in free_variables(value)}
    done: dict[Node, Node] = {}

    def visit(current: Node) -> Node | Steps[Node, Node]:
        if isinstance(current, Expr | Buffer):
            return below(current)
        _check_capture(current, bad)
        return mapped(current)

    def below(current: Node) -> Node:
        if isinstance(current, Var):
            value = values.get(current)
            return current if value is None else widen(value, current.dtype)
        if not isinstance(current, Expr):
            return map_children(current, below)
        # Of buffers, which have variables in their shapes, that says nothing.
        if values.keys().isdisjoint(free_variables(current)) and Buffer not in kinds_in(current):
            return current
        result = done.get(current)
        if result is None:
            result = done[current] = map_children(current, below)
        return result

    root: Node = node
    return trampoline(visit, root)  # type: ignore[return-value]  # statements stay statements, expressions stay expressions


def _check_capture(stmt: Node, bad: set[Var]) -> None:
    if isinstance(stmt, For | Let) and stmt.var in bad:
        raise ValueError(f"{stmt.var.name} is bound inside the statement it is substituted in")
    if isinstance(stmt, Block) and any(iter_var.var in bad for iter_var in stmt.iter_vars):
        raise ValueError(f"block {stmt.name} binds a variable that is substituted in it")


def always_evaluates(expr: Expr, var: Var) -> bool:
    """Whether the value of a variable is needed whatever an expression's conditions are."""
    if isinstance(expr, IfThenElseExpr):
        return always_evaluates(expr.condition, var)
    if isinstance(expr, Logical):
        return always_evaluates(expr.lhs, var)
    return expr == var or any(isinstance(part, Expr) and always_evaluates(part, var) for part in children(expr))


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


LONGEST_SEQUENCE = 20_000  # allocations, aliases and lets that follow one another in one function
MAX_NESTING = 100  # loops, branches and blocks inside one another
