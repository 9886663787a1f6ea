"""What a statement does to memories from outside of it, as far as its text says it, computed once for each statement.
Part of the trusted computing base.

Statements with parts of other kinds than those listed here (opaque calls, pointers, views of regions, threads) are not
described at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from layoutproof.ir.buffer import Buffer, BufferLoad, BufferRegion, Range
from layoutproof.ir.dtype import HANDLE, DType
from layoutproof.ir.expr import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    FloatImm,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Ramp,
    Select,
    Var,
)
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.intrinsics import Assume, Call, Limit, Reinterpret, Undef
from layoutproof.ir.node import Node
from layoutproof.ir.stmt import (
    Allocate,
    Block,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    IterVar,
    Let,
    Seq,
    Stmt,
)
from layoutproof.ir.visit import loops_of_stores, walk

_KNOWN: frozenset[type[Node]] = frozenset(
    {Seq, For, IfThenElse, Let, BufferStore, Allocate, DeclBuffer, Block, IterVar, Evaluate, Buffer, BufferLoad}
    | {BufferRegion, Range, Var, IntImm, FloatImm, Binary, Compare, Logical, Not, Select, IfThenElseExpr, Cast, Ramp}
    | {Broadcast, Call, Reinterpret, Undef, Limit, Assume}
)
_LOOPS = frozenset((ForKind.SERIAL, ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.UNROLLED))


@dataclass(frozen=True, slots=True)
class Touched:
    """What a statement does to memories from outside of it.

    `memories` are their names, each with a type of elements that it looks at; `written` those that it stores to. With
    `fixed`, data decides neither which accesses happen nor where they go. `stores` has for each store, in the order of
    the text, the map of the loop variables around it to themselves; `blocks` are the names of the blocks.
    """

    memories: tuple[tuple[str, DType], ...]
    written: frozenset[str]
    fixed: bool
    stores: tuple[IndexMap, ...]
    blocks: tuple[str, ...]


def touched_by(stmt: Stmt) -> Touched | None:
    """What a statement touches, computed once for each object; None for one with parts of other kinds."""
    if stmt._touched is None:
        object.__setattr__(stmt, "_touched", (_touched(stmt),))
    found: tuple[Touched | None] = stmt._touched  # type: ignore[assignment]  # a slot of every statement, filled here only
    return found[0]


def _touched(stmt: Stmt) -> Touched | None:
    views: dict[Buffer, None] = {}
    written, inner = set[Var](), set[Var]()
    blocks, fixed = list[str](), True
    for node in walk(stmt):
        if type(node) not in _KNOWN or not _is_plain(node):
            return None
        if isinstance(node, Buffer):
            views.setdefault(node)
        elif isinstance(node, BufferStore):
            written.add(node.buffer.data)
        elif isinstance(node, Block):
            blocks.append(node.name)
        inner.update(_allocated(node))
        fixed = fixed and not any(isinstance(part, BufferLoad) for told in _deciding(node) for part in walk(told))
    outer = dict.fromkeys((view.data.name, view.dtype) for view in views if view.data not in inner)
    around = [tuple(loop.var for loop in loops) for loops in loops_of_stores(stmt)]
    stores = tuple(IndexMap(variables, variables) for variables in around)
    return Touched(tuple(outer), frozenset(v.name for v in written - inner), fixed, stores, tuple(blocks))


def _is_plain(node: Node) -> bool:
    match node:
        case For(kind=kind):
            return kind in _LOOPS
        case Block(match_buffers=views):
            return not views
        case Let(var=var):
            return var.dtype != HANDLE
        case Evaluate(value=value):
            return isinstance(value, Assume)
        case _:
            return True


def _allocated(node: Node) -> Iterator[Var]:
    if isinstance(node, Allocate):
        yield node.buffer.data
    elif isinstance(node, Block):
        yield from (buffer.data for buffer in node.alloc_buffers)


def _deciding(node: Node) -> tuple[Node, ...]:
    """The expressions of a node that decide what of the rest is done, and where."""
    match node:
        case For(start=start, extent=extent):
            return start, extent
        case IfThenElse(condition=condition) | IfThenElseExpr(condition=condition):
            return (condition,)
        case Logical(lhs=lhs):
            return (lhs,)
        case Let(value=value):
            return (value,)  # which may stand in a condition
        case Block(where=where):
            return (where,)
        case IterVar(binding=binding):
            return (binding,)
        case BufferStore(indices=indices) | BufferLoad(indices=indices):
            return indices
        case _:
            return ()
