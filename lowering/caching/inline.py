"""Blocks that are computed where their values are used, without a buffer between.

Source: `compute_inline` and `reverse_compute_inline` of upstream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import TRUE, Expr, Var, is_zero, logical_and, widen
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite
from layoutproof.ir.stmt import NOTHING, Allocate, Block, BufferStore, IfThenElse, IterKind, Stmt
from layoutproof.ir.visit import (
    loads_in,
    loops_of_stores,
    map_children,
    mapped,
    rewrite_bottom_up,
    stores_in,
    substitute,
    walk,
)
from layoutproof.lowering import codes
from layoutproof.lowering.caching.compute_at import OwnNest
from layoutproof.lowering.caching.stage import apart
from layoutproof.lowering.caching.temporaries import find_temporary, without_record
from layoutproof.lowering.loops.nest import put, scope_around
from layoutproof.lowering.passes.base import ArgumentKind, Pass, option
from layoutproof.lowering.passes.witness_maps import rewrite_of


@dataclass(frozen=True)
class ComputeInline(Pass):
    """Compute what a block stores wherever it is loaded, and drop the block and its buffer.

    The block stores one value, at its iterators.
    """

    primitive: ClassVar[str] = "compute_inline"
    block: str = field(metadata=option(ArgumentKind.NAME))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function without the block.

        Raises LayoutproofError for an unknown block, one that does anything else than store one value at its iterators,
        and a buffer that callers see, that others store to, or whose memory is used otherwise.
        """
        own = OwnNest.of(func, self.block)
        store = _only_store(own)
        at = _iterators(own, store.indices, f"stores to {store.buffer.name}")
        buffer, _ = find_temporary(func, store.buffer.name)
        _check_one_store(func, buffer, own)

        def inlined(rebuilt: Node) -> Node:
            if isinstance(rebuilt, BufferLoad) and rebuilt.buffer == buffer:
                return substitute(store.value, dict(zip(at, rebuilt.indices, strict=True)))
            return _without_regions(rebuilt, buffer)

        origins = [n for n, each in enumerate(stores_in(func.body)) if each is not store]
        body = rewrite_bottom_up(put(func, own.nest, NOTHING).body, inlined)
        return rewrite_of(func, apart(_without_buffer(func.with_body(body), buffer)), origins)


@dataclass(frozen=True)
class ReverseComputeInline(Pass):
    """Do what a block does with the one buffer that it reads where that is stored, and drop the block and that buffer.

    The block stores one value, and loads the buffer at its iterators; one other block stores to the buffer, once.
    """

    primitive: ClassVar[str] = "reverse_compute_inline"
    block: str = field(metadata=option(ArgumentKind.NAME))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function without the block.

        Raises LayoutproofError for an unknown block, one that does anything else, and buffers that others load or store
        to.
        """
        own = OwnNest.of(func, self.block)
        store = _only_store(own)
        producer, written, load = _producer(func, own, store)
        at = _iterators(own, load.indices, f"reads {load.buffer.name}")
        if set(at) != {v.var for v in own.block.iter_vars}:
            message = f"block {self.block} has iterators that do not say where it reads {load.buffer.name}"
            raise error(codes.NO_PLACE, message, own.block.span)
        cell = dict(zip(at, written.indices, strict=True))

        def visit(node: Node) -> Node:
            if isinstance(node, BufferLoad) and node.buffer == load.buffer:
                return written.value
            if isinstance(node, Var) and node in cell:
                return widen(cell[node], node.dtype)
            return map_children(node, visit)

        value = visit(store.value)
        assert isinstance(value, Expr)
        indices = tuple(substitute(index, cell) for index in store.indices)
        new_store = BufferStore(store.buffer, indices, value, span=store.span)
        inner = [cell[v.var] for v in own.block.iter_vars]
        guard = _guard(func, producer, own, inner)
        put_store: Stmt = new_store if guard == TRUE else IfThenElse(guard, new_store)
        block = replace(
            producer, reads=None, writes=None, body=put(func.with_body(producer.body), written, put_store).body
        )
        without = put(put(func, producer, block), own.nest, NOTHING)
        new = apart(_without_buffer(without, load.buffer))
        return _paired(func, new, own, (store, new_store), _over_loops(producer, inner))


def _only_store(own: OwnNest) -> BufferStore:
    block = own.block
    reduces = any(v.kind is IterKind.REDUCE for v in block.iter_vars)
    if block.init is not None or reduces or not isinstance(block.body, BufferStore):
        message = f"block {block.name} does more than store one value, which cannot be done elsewhere"
        raise error(codes.NO_PLACE, message, block.span)
    return block.body


def _iterators(own: OwnNest, indices: Sequence[Expr], what: str) -> tuple[Var, ...]:
    """Indices that are iterators of the block, all different. Raises LayoutproofError for others."""
    known = {v.var for v in own.block.iter_vars}
    found = tuple(index for index in indices if isinstance(index, Var) and index in known)
    if len(set(found)) < len(indices):
        raise error(codes.NO_PLACE, f"block {own.block.name} {what} at computed indices", own.block.span)
    return found


def _check_one_store(func: PrimFunc, buffer: Buffer, own: OwnNest) -> None:
    stores = [store for store in stores_in(func.body) if store.buffer.data == buffer.data]
    if len(stores) > 1:
        message = f"{buffer.name} is stored to elsewhere too, not only in block {own.block.name}"
        raise error(codes.NO_PLACE, message, own.block.span)


def _producer(func: PrimFunc, own: OwnNest, store: BufferStore) -> tuple[Block, BufferStore, BufferLoad]:
    """The block that stores what the block loads, with its store, and the load."""
    stores = list(stores_in(func.body))
    everywhere = list(loads_in(func.body))
    for load in loads_in(store):
        buffer = load.buffer
        written = [each for each in stores if each.buffer.data == buffer.data]
        if any(b.data == buffer.data for b in func.buffers) or len(written) != 1:
            continue
        mine = [each for each in loads_in(store) if each.buffer.data == buffer.data]
        others = [each for each in everywhere if each.buffer.data == buffer.data]
        if any(each != load for each in mine) or len(others) != len(mine):
            continue
        find_temporary(func, buffer.name)
        for node in walk(func.body):
            if isinstance(node, Block) and not node.is_root and node.init is None and node.body is written[0]:
                return node, written[0], load
    message = f"block {own.block.name} loads nothing that one other block stores, once, and that no other block loads"
    raise error(codes.NO_PLACE, message, own.block.span)


def _guard(func: PrimFunc, producer: Block, own: OwnNest, inner: Sequence[Expr]) -> Expr:
    """The condition on the producer's iterators that the block would run for what is stored there."""
    scope = scope_around(func, producer)
    for v in producer.iter_vars:
        scope = scope.with_range(v.var, v.domain.start, v.domain.extent)
    needed: list[Expr] = []
    for v, index in zip(own.block.iter_vars, inner, strict=True):
        start, extent = (widen(e, index.dtype) for e in (v.domain.start, v.domain.extent))
        needed += [index >= start, index < (extent if is_zero(start) else start + extent)]
    values = own.old_loops(inner)
    needed += [substitute(c, values) for c in own.guards()]
    return logical_and(*(c for c in needed if not scope.proves(c)))


def _over_loops(block: Block, expressions: Sequence[Expr]) -> list[Expr]:
    values = {v.var: v.binding for v in block.iter_vars}
    return [substitute(e, values) for e in expressions]


def _paired(
    old: PrimFunc, new: PrimFunc, own: OwnNest, stores: tuple[BufferStore, BufferStore], at: Sequence[Expr]
) -> Rewrite:
    """The rewrite in which the new store computes what the block's store did."""
    mine, merged = stores
    numbers = {id(store): n for n, store in enumerate(stores_in(old.body))}
    numbers[id(merged)] = numbers[id(mine)]
    loops = loops_of_stores(old.body)
    values, around = own.old_loops(at), {id(loop) for loop in own.loops}
    maps: list[InstanceMap] = []
    for number, (store, inside) in enumerate(zip(stores_in(new.body), loops_of_stores(new.body), strict=True)):
        origin = numbers[id(store)]
        outputs = tuple(values[loop.var] if id(loop) in around else loop.var for loop in loops[origin])
        maps.append(InstanceMap(number, origin, IndexMap(tuple(loop.var for loop in inside), outputs)))
    rewrite = rewrite_of(old, new, [None] * len(maps))
    return replace(rewrite, witness=replace(rewrite.witness, instances=tuple(maps)))


def _without_regions(node: Node, buffer: Buffer) -> Node:
    """Blocks that say that they read the buffer say nothing."""
    if isinstance(node, Block) and any(region.buffer == buffer for region in node.reads or ()):
        return replace(node, reads=None, writes=None)
    return node


def _without_buffer(func: PrimFunc, buffer: Buffer) -> PrimFunc:
    """The function without the allocation of a buffer that is not used."""

    def visit(node: Node) -> Node | Steps[Node, Node]:
        while isinstance(node, Allocate) and node.buffer == buffer:
            node = node.body
        if isinstance(node, Block) and buffer in node.alloc_buffers:
            node = replace(node, alloc_buffers=tuple(b for b in node.alloc_buffers if b != buffer))
        return mapped(node) if isinstance(node, Stmt) else node

    body = trampoline(visit, func.body)
    assert isinstance(body, Stmt)
    return replace(func, body=body, attrs=without_record(func.attrs, buffer.data.name))
