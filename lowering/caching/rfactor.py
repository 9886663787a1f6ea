"""Reductions in two stages: partial results along one loop, which are joined afterwards.

Source: `rfactor` of upstream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from layoutproof.ir.buffer import Buffer, BufferLoad, Range
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import Binary, Expr, Var, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.stmt import Block, BufferStore, For, IterKind, IterVar, Stmt, seq
from layoutproof.ir.visit import free_variables, loops_of_stores, stores_in, substitute, take_fresh
from layoutproof.lowering import codes
from layoutproof.lowering.caching.compute_at import OwnNest
from layoutproof.lowering.caching.stage import apart, name_of_cache, place_of
from layoutproof.lowering.loops.nest import LoopName, find_loop, fresh_variable, names_of, nest, put
from layoutproof.lowering.passes.base import ArgumentKind, Pass, option

_JOINS = (BinaryOp.ADD, BinaryOp.MUL, BinaryOp.MIN, BinaryOp.MAX)


@dataclass(frozen=True)
class Rfactor(Pass):
    """Reduce along all loops but one into a buffer with an axis for that loop, `<buffer>_rf`, and join its cells after.

    The block that makes the partial results is `<block>_rf`; the loop is one of its spatial ones, which may run in
    parallel or over threads. `factor_axis` is the place of the new axis. Sums of floats need `reassoc`, and `nsz` if
    they do not begin with 0.0; minima and maxima need `nnan` and `nsz`.
    """

    primitive: ClassVar[str] = "rfactor"
    block: str = field(metadata=option(ArgumentKind.NAME))
    loop: LoopName = field(metadata=option(ArgumentKind.LOOP))
    factor_axis: int = field(default=0, metadata=option(ArgumentKind.INTEGER))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with two blocks.

        Raises LayoutproofError for an unknown block or loop, a block that is not one reduction with an init, stands
        beside others in the loop or under a condition, a loop that determines where the block stores, and an axis that
        there is not.
        """
        stages = _Stages.of(func, OwnNest.of(func, self.block), find_loop(func, self.block, self.loop))
        rank = stages.update.buffer.rank
        if not 0 <= self.factor_axis <= rank:
            message = f"factor_axis is {self.factor_axis}; {stages.update.buffer.name} has {rank} axes"
            raise error(codes.ARGUMENT_TYPE, message, stages.own.block.span)
        return stages.rewrite(self.factor_axis)


@dataclass(frozen=True, slots=True)
class _Stages:
    """A reduction, its start and update, the other operand of the update, and the loop that becomes an axis."""

    func: PrimFunc
    own: OwnNest
    loop: For
    start: BufferStore
    update: BufferStore
    op: BinaryOp
    part: Expr

    @staticmethod
    def of(func: PrimFunc, own: OwnNest, loop: For) -> _Stages:
        """Raises LayoutproofError for a block that is not one reduction over the loop."""
        block = own.block
        start, update = block.init, block.body
        if not isinstance(start, BufferStore) or not isinstance(update, BufferStore):
            raise error(codes.NO_PLACE, f"block {block.name} is not one reduction with an init", block.span)
        cell = BufferLoad(update.buffer, update.indices)
        value = update.value
        if not isinstance(value, Binary) or value.op not in _JOINS or cell not in (value.lhs, value.rhs):
            raise error(codes.NO_PLACE, f"block {block.name} does not join a part to its cell", block.span)
        if own.guards() or not any(each is loop for each in own.loops):
            message = f"block {block.name} stands under a condition, or beside others in loop {loop.var.name}"
            raise error(codes.NO_PLACE, message, block.span)
        reduced = {v for i in block.iter_vars if i.kind is IterKind.REDUCE for v in free_variables(i.binding)}
        spatial = {v for i in block.iter_vars if i.kind is not IterKind.REDUCE for v in free_variables(i.binding)}
        if loop.var not in reduced - spatial:
            message = f"loop {loop.var.name} is not one that block {block.name} only reduces over"
            raise error(codes.NO_PLACE, message, loop.span)
        part = value.rhs if value.lhs == cell else value.lhs
        return _Stages(func, own, loop, start, update, value.op, part)

    def rewrite(self, axis: int) -> Rewrite:
        """The function with the two stages, the new axis at a place."""
        place, taken = place_of(self.func, self.own.block.name), names_of(self.func)
        old = self.update.buffer
        name = name_of_cache(old, "rf", taken)
        shape = (*old.shape[:axis], self.loop.extent, *old.shape[axis:])
        buffer = Buffer(name, old.dtype, shape, Var(f"{name}_data", HANDLE), scope=old.scope)
        first = self.first(buffer, axis, taken)
        second, copies = self.second(buffer, axis, taken)
        both = put(self.func, self.own.nest, seq(nest(self.own.loops, first), second))
        if place.home is None:
            whole: Stmt = Block("root", (), both.body, alloc_buffers=(buffer,))
            new = both.with_body(whole)
        else:
            home = place_of(both, first.name).home
            assert home is not None
            new = put(both, home, replace(home, alloc_buffers=(*home.alloc_buffers, buffer)))
        new = apart(new)
        return Rewrite(self.func, new, Witness(self.instances(new, first, copies)))

    def first(self, buffer: Buffer, axis: int, taken: set[str]) -> Block:
        """The block that makes the partial results: each loop over the reduction is an iterator of its own."""
        block = self.own.block
        reduce = [v for v in block.iter_vars if v.kind is IterKind.REDUCE]
        used = {v for i in reduce for v in free_variables(i.binding)}
        fresh: dict[Var, IterVar] = {}
        for loop in self.own.loops:
            if loop.var in used:
                kind = IterKind.SPATIAL if loop is self.loop else IterKind.REDUCE
                variable = fresh_variable(f"v{loop.var.name}", loop.var, taken)
                fresh[loop.var] = IterVar(variable, kind, Range(loop.start, loop.extent), loop.var)
        values = {i.var: substitute(i.binding, {old: new.var for old, new in fresh.items()}) for i in reduce}
        turn = fresh[self.loop.var].var
        cell = BufferLoad(buffer, _with_axis(self.update.indices, axis, turn, self.loop.start))
        kept = [v for v in block.iter_vars if v.kind is not IterKind.REDUCE]
        body = BufferStore(buffer, cell.indices, Binary(self.op, cell, substitute(self.part, values)))
        init = BufferStore(buffer, cell.indices, self.start.value)
        name = take_fresh(f"{block.name}_rf", taken - {buffer.name})
        return replace(
            block, name=name, iter_vars=(*kept, *fresh.values()), init=init, body=body, reads=None, writes=None
        )

    def second(self, buffer: Buffer, axis: int, taken: set[str]) -> tuple[Stmt, Mapping[Var, Expr]]:
        """The block that joins them, in loops of its own; and its loops by those that they copy."""
        block = self.own.block
        kept = [v for v in block.iter_vars if v.kind is not IterKind.REDUCE]
        needed = {v for i in kept for v in free_variables(i.binding)} | {self.loop.var}
        copies: dict[Var, Expr] = {}
        loops: list[For] = []
        for loop in self.own.loops:
            if loop.var in needed:
                variable = fresh_variable(f"{loop.var.name}_1", loop.var, taken)
                start, extent = substitute(loop.start, copies), substitute(loop.extent, copies)
                copies[loop.var] = variable
                loops.append(replace(loop, var=variable, start=start, extent=extent))
        turn = fresh_variable(f"v{self.loop.var.name}", self.loop.var, taken)
        over = IterVar(turn, IterKind.REDUCE, Range(self.loop.start, self.loop.extent), copies[self.loop.var])
        part = BufferLoad(buffer, _with_axis(self.update.indices, axis, turn, self.loop.start))
        cell = BufferLoad(self.update.buffer, self.update.indices)
        body = BufferStore(cell.buffer, cell.indices, Binary(self.op, cell, part))
        iter_vars = tuple(replace(v, binding=substitute(v.binding, copies)) for v in kept)
        joined = replace(block, iter_vars=(*iter_vars, over), body=body, reads=None, writes=None)
        return nest(loops, joined), copies

    def instances(self, new: PrimFunc, first: Block, copies: Mapping[Var, Expr]) -> tuple[InstanceMap, ...]:
        """The updates of the first stage are those that there were; the second one begins as the reduction did."""
        old_loops = loops_of_stores(self.func.body)
        numbers = {id(store): n for n, store in enumerate(stores_in(self.func.body))}
        own = {id(loop) for loop in self.own.loops}
        maps: list[InstanceMap] = []
        for number, (store, loops) in enumerate(zip(stores_in(new.body), loops_of_stores(new.body), strict=True)):
            inputs = tuple(loop.var for loop in loops)
            origin = numbers[id(self.update)] if store is first.body else numbers.get(id(store))
            if origin is None:
                maps.append(InstanceMap(number, None, None))
                continue
            moved = {**copies, self.loop.var: self.loop.start} if store is self.start else {}
            outputs = tuple(
                moved.get(loop.var, loop.start) if moved and id(loop) in own else loop.var for loop in old_loops[origin]
            )
            maps.append(InstanceMap(number, origin, IndexMap(inputs, outputs)))
        return tuple(maps)


def _with_axis(indices: Sequence[Expr], axis: int, turn: Var, start: Expr) -> tuple[Expr, ...]:
    """The indices with that of the new axis, which counts from 0."""
    index: Expr = turn if start == const(0, start.dtype) else turn - start
    return (*indices[:axis], index, *indices[axis:])
