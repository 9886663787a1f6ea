"""Reductions over threads: each thread along an axis adds its part to one cell, in an order that is not fixed."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import Binary, Expr, Var
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.stmt import BufferStore, Let, Seq, Stmt, seq
from layoutproof.ir.threads.kernel_text import Across, NotSequential
from layoutproof.ir.visit import free_variables, loads_in, map_children, stores_in, substitute, walk

_JOINS = frozenset((BinaryOp.ADD, BinaryOp.MUL, BinaryOp.MIN, BinaryOp.MAX))


@dataclass(frozen=True, slots=True)
class Joins:
    """How a reduction over threads joins values: the operators that join floats, and the memories of which several hold
    one value together (`tuples`), whose joining may depend on the order.
    """

    floats: frozenset[BinaryOp]
    tuples: frozenset[Var]


def joins_of(across: Across, axes: AbstractSet[Var]) -> Joins:
    """What threads join.

    Raises NotSequential where the order in which threads run could be seen in another way: each store joins the
    thread's part to its cell by a commutative operator, or joins what several cells hold together, or stores what is
    the same for all threads (the start).
    """
    written = {store.buffer.data for store in stores_in(across)}
    floats: set[BinaryOp] = set()
    tuples: set[Var] = set()
    for store in _without_lets(across.body, written):
        part = _part(store)
        value = store.value if part is None else part[1]
        seen = {v for expression in (*store.indices, value) for load in loads_in(expression) for v in _data(load)}
        varies = part is None and _varies(axes, store.value)
        if not _varies(axes, *store.indices) and (varies or seen & written) and _is_of_tuple(store, written):
            tuples |= {store.buffer.data, *(seen & written)}
            continue
        if _varies(axes, *store.indices) or varies or seen & written:
            raise NotSequential(f"a reduction over threads that is not one operator on {store.buffer.name}", store)
        if part is not None and store.buffer.dtype.is_float:
            floats.add(part[0])
    if len(tuples) == 1:
        name = next(store.buffer.name for store in stores_in(across) if store.buffer.data in tuples)
        raise NotSequential(f"a reduction over threads that is not one operator on {name}", across)
    return Joins(frozenset(floats), frozenset(tuples))


def _is_of_tuple(store: BufferStore, written: AbstractSet[Var]) -> bool:
    """Whether a store is of something made from what cells at its own place hold."""
    mine = [load for load in loads_in(store.value) if load.buffer.data in written]
    return bool(mine) and all(load.indices == store.indices for load in mine)


def _without_lets(stmt: Stmt, written: AbstractSet[Var]) -> Iterator[BufferStore]:
    """The stores, what lets bind written into their values: what was there when the let was evaluated is what is there
    when the one store to that memory runs.
    """
    for node in walk(stmt):
        if isinstance(node, Let):
            seen = {load.buffer.data for load in loads_in(node.value)} & written
            stores = list(stores_in(node.body))
            if any(sum(store.buffer.data == data for store in stores) > 1 for data in seen):
                raise NotSequential("a reduction over threads that stores twice to what it loads first", node)
    yield from stores_in(_plain(stmt))


def _plain(stmt: Stmt) -> Stmt:
    if isinstance(stmt, Let):
        return _plain(substitute(stmt.body, {stmt.var: stmt.value}))
    if isinstance(stmt, Seq):
        return seq(*map(_plain, stmt.body))
    return map_children(stmt, lambda child: _plain(child) if isinstance(child, Stmt) else child)


def _data(load: BufferLoad) -> tuple[Var, ...]:
    return (load.buffer.data,)


def _varies(axes: AbstractSet[Var], *expressions: Expr) -> bool:
    return any(v in axes for expression in expressions for v in free_variables(expression)) or any(
        next(loads_in(expression), None) is not None for expression in expressions
    )


def _part(store: BufferStore) -> tuple[BinaryOp, Expr] | None:
    """The operator and the other operand, where a store joins something to its own cell."""
    value = store.value
    if not isinstance(value, Binary) or value.op not in _JOINS:
        return None
    cell = BufferLoad(store.buffer, store.indices)
    if value.lhs == cell:
        return value.op, value.rhs
    return (value.op, value.lhs) if value.rhs == cell else None
