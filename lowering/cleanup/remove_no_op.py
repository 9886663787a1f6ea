"""Removal of dead stores: overwritten before they are read, or storing the value that is already there.

Candidates are found in the text; the checker decides, about all removals together.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import islice
from typing import ClassVar

from layoutproof.ir.buffer import Buffer, BufferLoad, BufferRegion
from layoutproof.ir.expr import Var
from layoutproof.ir.intrinsics import Assume, OpaqueCall
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import (
    NOTHING,
    Allocate,
    Attributes,
    AttrValue,
    Block,
    BufferStore,
    DeclBuffer,
    Evaluate,
    MeantValue,
    Stmt,
)
from layoutproof.ir.visit import children, descend, loads_in, mapped, stores_in, walk
from layoutproof.lowering.cleanup.rebuild import Origins, is_proved, tidied, tries_for
from layoutproof.lowering.passes.base import Pass
from layoutproof.lowering.passes.witness_maps import rewrite_of


@dataclass(frozen=True)
class RemoveNoOp(Pass):
    """Remove stores that are overwritten unread or store what is there, and then empty loops and branches.

    A store also goes if it writes a temporary that is never read. A cell holds a value already if it was just read
    there, stored there, or is assumed to be there. Calls in a removed store's value stay, and so do assumptions.
    """

    primitive: ClassVar[str] = "remove_no_op"
    may_leave_nothing: ClassVar[bool] = True

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function without its no-ops; unchanged if none can be proved."""
        gone: frozenset[int] = frozenset()
        tries = tries_for(func)
        found = True
        while found:
            found = False
            # From the end, since a removed store may leave others without a reader.
            for number in islice(_candidates(func, gone), tries):
                tries -= 1
                if is_proved(without_stores(func, gone | {number})):
                    gone, found = gone | {number}, True
        cleaned = without_stores(func, gone)
        return cleaned if gone or is_proved(cleaned) else rewrite_of(func, func)


def _candidates(func: PrimFunc, gone: AbstractSet[int]) -> Iterator[int]:
    """Stores that may be without effect, last first: other stores write the memory, or it is read there, assumed, or
    temporary.
    """
    stores = list(stores_in(func.body))
    left = [store for number, store in enumerate(stores) if number not in gone]
    parameters = {buffer.data for buffer in func.buffers}
    assumed = {
        load.buffer.data
        for node in walk(func.body)
        if isinstance(node, Evaluate) and isinstance(node.value, Assume)
        for load in loads_in(node)
    }
    for number in reversed(range(len(stores))):
        store = stores[number]
        data = store.buffer.data
        if number in gone:
            continue
        if data not in parameters or data in assumed:
            yield number
        elif any(other is not store and other.buffer.data == data for other in left):
            yield number
        elif any(load.buffer.data == data for load in loads_in(store.value)):
            yield number


def without_stores(func: PrimFunc, gone: AbstractSet[int]) -> Rewrite:
    """The rewrite that takes out stores, by number, and what holds nothing then."""
    origins = Origins(func)
    removed = {id(store) for number, store in enumerate(stores_in(origins.body)) if number in gone}
    body = _without(origins.body, removed)
    return origins.rewrite(_without_unused(func, body))


def _without(stmt: Stmt, removed: AbstractSet[int]) -> Stmt:
    """`stmt` without some stores, and without statements that do nothing."""

    def visit(node: Node) -> Node | Steps[Node, Node]:
        match node:
            case BufferStore(value=value):
                if id(node) not in removed:
                    return node
                return Evaluate(value) if any(isinstance(n, OpaqueCall) for n in walk(value)) else NOTHING
            case Evaluate(value=value):
                return node if any(isinstance(n, OpaqueCall | Assume) for n in walk(value)) else NOTHING
            case Stmt():
                return inside(node)
            case _:
                return node

    def inside(node: Stmt) -> Steps[Node, Node]:
        new = yield from mapped(node)
        return tidied(new, node)

    result = trampoline(visit, stmt)
    assert isinstance(result, Stmt)
    return result


def _without_unused(func: PrimFunc, stmt: Stmt) -> Stmt:
    """`stmt` without unused temporaries and views, except those that an attribute of the function names."""
    named = frozenset(_words(func.attrs))
    used, data = _mentioned(stmt)

    def is_used(buffer: Buffer) -> bool:
        return buffer.data in data or buffer.data.name in named

    def visit(node: Node) -> Node | Steps[Node, Node]:
        return descend(node, visit, used_only) if isinstance(node, Stmt) else node

    def used_only(new: Node) -> Node:
        match new:
            case Allocate(buffer=buffer, body=body) if not is_used(buffer):
                return body
            case DeclBuffer(buffer=buffer, body=body) if buffer not in used:
                return body
            case Block(alloc_buffers=buffers) if not all(map(is_used, buffers)):
                left = replace(new, alloc_buffers=tuple(filter(is_used, buffers)))
                return left if left != replace(_ROOT, body=left.body) else left.body
            case _:
                return new

    result = trampoline(visit, stmt)
    assert isinstance(result, Stmt)
    return result


# The block of a function's allocations once there are none.
_ROOT = Block("root", (), NOTHING)


def _mentioned(stmt: Stmt) -> tuple[set[Buffer], set[Var]]:
    """The buffers that are accessed or annotated, and the data variables that anything but a declaration mentions."""
    buffers: set[Buffer] = set()
    data: set[Var] = set()
    stack: list[Node] = [stmt]
    while stack:
        node = stack.pop()
        match node:
            case BufferLoad(buffer=buffer) | BufferStore(buffer=buffer) | BufferRegion(buffer=buffer):
                buffers.add(buffer)
                data.add(buffer.data)
            case Var():
                data.add(node)
            case _:
                pass
        stack += [child for child in children(node) if not isinstance(child, Buffer)]
    return buffers, data


def _words(value: AttrValue) -> Iterator[str]:
    """Every name and text in an attribute's value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Attributes | MeantValue):
        for key, inner in (value if isinstance(value, Attributes) else value.plain()).items():
            yield key
            yield from _words(inner)
    elif isinstance(value, tuple):
        for inner in value:
            yield from _words(inner)
    elif isinstance(value, Var):
        yield value.name
