"""Statements put together again after something in them went: nothing stays that holds nothing."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from layoutproof.ir.buffer import Buffer, BufferRegion
from layoutproof.ir.expr import FALSE, TRUE
from layoutproof.ir.intrinsics import OpaqueCall
from layoutproof.ir.stmt import NOTHING, Allocate, Block, DeclBuffer, For, IfThenElse, Let, Stmt
from layoutproof.ir.visit import loads_in, stores_in, walk
from layoutproof.lowering.cleanup.conditions import negated


def tidied(new: Stmt, old: Stmt) -> Stmt:
    """`new`, which is `old` with statements or expressions in it replaced: nothing where it does nothing, one arm where that is decided."""
    match new:
        case For() | Let() | Allocate() | DeclBuffer():
            return NOTHING if new.body == NOTHING else new
        case IfThenElse():
            return branch(new)
        case Block():
            return new if new is old else _block(new)
        case _:
            return new


def branch(stmt: IfThenElse) -> Stmt:
    """A branch whose arms may be empty or whose condition may be decided, without what never runs."""
    if stmt.condition == TRUE:
        return stmt.then
    if stmt.condition == FALSE:
        return NOTHING if stmt.otherwise is None else stmt.otherwise
    if stmt.otherwise is None or stmt.otherwise == NOTHING:
        return NOTHING if stmt.then == NOTHING else replace(stmt, otherwise=None)
    if stmt.then == NOTHING:
        return IfThenElse(negated(stmt.condition), stmt.otherwise)
    return stmt


def _block(new: Block) -> Stmt:
    """A block of which something went: region annotations speak of what is left."""
    init = None if new.init == NOTHING else new.init
    if new.where == FALSE or (init is None and new.body == NOTHING):
        return NOTHING
    parts = [part for part in (init, new.body) if part is not None]
    loaded = {load.buffer for part in parts for load in loads_in(part)} | {load.buffer for load in loads_in(new.where)}
    stored = {store.buffer for part in parts for store in stores_in(part)}
    opaque = any(isinstance(node, OpaqueCall) for part in parts for node in walk(part))
    reads, writes = (new.reads, new.writes) if opaque else (_about(new.reads, loaded), _about(new.writes, stored))
    return replace(new, init=init, reads=reads, writes=writes)


def _about(regions: Sequence[BufferRegion] | None, buffers: AbstractSet[Buffer]) -> tuple[BufferRegion, ...] | None:
    return None if regions is None else tuple(region for region in regions if region.buffer in buffers)
