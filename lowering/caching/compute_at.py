"""Blocks that are computed where they are needed: moved into a loop of a block that reads or writes the same buffer.

Source: `compute_at` and `reverse_compute_at` of upstream, with its rule for thread axes: of memory that threads share,
all that they need together is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import ClassVar

from layoutproof.ir.buffer import Buffer, BufferLoad, Range
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr, IntImm, Var, const, is_zero, logical_and
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.stmt import (
    NOTHING,
    Block,
    For,
    ForKind,
    IfThenElse,
    Seq,
    Stmt,
    body_of,
    seq,
)
from layoutproof.ir.threads.axes import Sharing, sharing_of
from layoutproof.ir.visit import free_variables, loads_in, loops_of_stores, map_children, stores_in, substitute, walk
from layoutproof.lowering import codes
from layoutproof.lowering.arith.affine import Affine, affine_of, expression_of
from layoutproof.lowering.caching.footprint import loaded_box, stored_box
from layoutproof.lowering.caching.stage import Place, apart
from layoutproof.lowering.loops.nest import (
    LoopName,
    find_loop,
    fresh_variable,
    names_of,
    nest,
    own_path,
    parts_of,
    path_to,
    put,
    scope_around,
)
from layoutproof.lowering.passes.base import ArgumentKind, Pass, option
from layoutproof.lowering.passes.effects import data_read, data_written, is_pure
from layoutproof.lowering.passes.find import find_block


@dataclass(frozen=True)
class ComputeAt(Pass):
    """Move a block into a loop of one that reads what it writes, before the reads: it computes what an iteration needs.

    In loops over threads it computes what they need together, if they share the buffer (`shared` in a block of threads,
    `global` in the grid), and what one of them needs if it is `local`. The new loops are `ax0`, `ax1`, ... . Refused if
    something outside of the loop needs what the block writes.
    """

    primitive: ClassVar[str] = "compute_at"
    moves_iterations: ClassVar[bool] = True
    block: str = field(metadata=option(ArgumentKind.NAME))
    reader: str = field(metadata=option(ArgumentKind.NAME))
    loop: LoopName = field(metadata=option(ArgumentKind.LOOP))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the block in the loop.

        Raises LayoutproofError for unknown names, a block that does not stand alone in its loops or writes to a
        parameter or at computed indices, and a loop that does not contain all that reads what the block writes.
        """
        move = _Move.of(func, self.block, find_loop(func, self.reader, self.loop))
        stores = list(stores_in(move.block))
        if not stores:
            raise error(codes.NO_PLACE, f"block {self.block} stores nothing", move.block.span)
        access = move.one_access([BufferLoad(store.buffer, store.indices) for store in stores], "stores to")
        if any(buffer.data == access.buffer.data for buffer in func.buffers):
            message = f"block {self.block} writes {access.buffer.name}, which callers see: all of it has to be computed"
            raise error(codes.NO_PLACE, message, move.block.span)
        move.check_no_use_outside(access.buffer.data)
        box = loaded_box(*move.one_iteration(access.buffer), move.relaxed(access.buffer))
        return move.rewrite(access, box, before=True)


@dataclass(frozen=True)
class ReverseComputeAt(Pass):
    """Move a block into a loop of one that writes what it reads, after the writes: it uses what an iteration leaves.

    In loops over threads it uses what they leave together, if they share the buffer, as for `compute_at`. The new loops
    are `ax0`, `ax1`, ... .
    """

    primitive: ClassVar[str] = "reverse_compute_at"
    moves_iterations: ClassVar[bool] = True
    block: str = field(metadata=option(ArgumentKind.NAME))
    writer: str = field(metadata=option(ArgumentKind.NAME))
    loop: LoopName = field(metadata=option(ArgumentKind.LOOP))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the block in the loop.

        Raises LayoutproofError for unknown names, a block that does not stand alone in its loops, and one that reads no
        buffer that is written in the loop, several, or one at computed indices.
        """
        move = _Move.of(func, self.block, find_loop(func, self.writer, self.loop))
        written = data_written(move.loop)
        loads = [load for load in loads_in(body_of(move.block)) if load.buffer.data in written]
        if not loads:
            message = f"block {self.block} reads nothing that loop {move.loop.var.name} writes"
            raise error(codes.NO_PLACE, message, move.block.span)
        access = move.one_access(loads, "reads")
        box = stored_box(*move.one_iteration(access.buffer), move.relaxed(access.buffer))
        return move.rewrite(access, box, before=False)


@dataclass(frozen=True, slots=True)
class OwnNest:
    """A block with the loops, outermost first, and conditions in which nothing else stands; `nest` is all of that."""

    block: Block
    nest: Stmt
    loops: tuple[For, ...]
    conditions: tuple[Expr, ...]

    @staticmethod
    def of(func: PrimFunc, name: str) -> OwnNest:
        """Raises LayoutproofError for an unknown block."""
        block = find_block(func, name)
        found: Stmt = block
        loops: list[For] = []
        conditions: list[Expr] = []
        for stmt in reversed(own_path(func, block)):
            if isinstance(stmt, For):
                loops.append(stmt)
            elif isinstance(stmt, IfThenElse) and stmt.otherwise is None and is_pure(stmt.condition):
                conditions.append(stmt.condition)
            else:
                break
            found = stmt
        return OwnNest(block, found, tuple(reversed(loops)), tuple(conditions))

    def guards(self) -> tuple[Expr, ...]:
        """The conditions of the block and around it, over its loops."""
        return (*parts_of(self.block.where), *(part for c in self.conditions for part in parts_of(c)))

    def old_loops(self, bindings: Sequence[Expr]) -> dict[Var, Expr]:
        """The loops over values of the block's iterators. Raises LayoutproofError where they do not follow."""
        own = {loop.var for loop in self.loops}
        pairs = [(affine_of(v.binding), b) for v, b in zip(self.block.iter_vars, bindings, strict=True)]
        values: dict[Var, Expr] = {}
        for loop in self.loops:
            uses = [(old, new) for old, new in pairs if any(loop.var in free_variables(term) for term in old.terms)]
            alone = [
                (old, new)
                for old, new in uses
                if old.terms.get(loop.var) == 1
                and not (own - {loop.var}) & {v for term in old.terms for v in free_variables(term)}
            ]
            if uses and not alone:
                message = f"loop {loop.var.name} of block {self.block.name} does not follow from one of its iterators"
                raise error(codes.NO_PLACE, message, loop.span, help="move the block before its loops are split")
            if alone:
                old, new = alone[0]
                rest = old - Affine({loop.var: 1})
                values[loop.var] = new if rest == Affine({}) else new - expression_of(rest, loop.var.dtype)
            else:
                values[loop.var] = loop.start
        return values


@dataclass(frozen=True, slots=True)
class _Move:
    """A block, and the loop that it is to be moved into."""

    func: PrimFunc
    own: OwnNest
    loop: For

    @staticmethod
    def of(func: PrimFunc, name: str, loop: For) -> _Move:
        """Raises LayoutproofError for an unknown block, and a loop that is one of its own."""
        own = OwnNest.of(func, name)
        if any(node is loop for node in walk(own.nest)):
            message = f"loop {loop.var.name} is a loop of block {name} itself"
            raise error(codes.NO_PLACE, message, loop.span)
        return _Move(func, own, loop)

    @property
    def block(self) -> Block:
        """The block."""
        return self.own.block

    @property
    def nest(self) -> Stmt:
        """The block with its loops."""
        return self.own.nest

    def one_access(self, accesses: Sequence[BufferLoad], verb: str) -> BufferLoad:
        """The access that all of them are. Raises LayoutproofError where they differ, or are not at iterators."""
        first = accesses[0]
        if any(other != first for other in accesses):
            names = ", ".join(dict.fromkeys(access.buffer.name for access in accesses))
            message = f"block {self.block.name} {verb} {names} at more than one place"
            raise error(codes.NO_PLACE, message, self.block.span)
        iterators = [v.var for v in self.block.iter_vars]
        plain = [index for index in first.indices if not isinstance(index, IntImm)]
        if any(not isinstance(i, Var) or i not in iterators for i in plain) or len(set(plain)) < len(plain):
            message = f"block {self.block.name} {verb} {first.buffer.name} at computed indices"
            raise error(codes.NO_PLACE, message, self.block.span, help="reindex makes them plain")
        return first

    def check_no_use_outside(self, data: Var) -> None:
        """Raise LayoutproofError where memory is used outside of the loop and the block."""
        rest = put(put(self.func, self.loop, replace(self.loop, body=NOTHING)), self.nest, NOTHING)
        if data in data_read(rest.body) | data_written(rest.body):
            message = f"what block {self.block.name} writes is used outside of loop {self.loop.var.name} too"
            raise error(codes.NO_PLACE, message, self.block.span, help="name a loop around all of its uses")

    def one_iteration(self, buffer: Buffer) -> tuple[PrimFunc, Place, Buffer]:
        """An iteration of the loop, without the block that moves and with other blocks written out."""
        plain = _written_out(put(self.func.with_body(self.loop.body), self.nest, NOTHING).body)
        func = put(self.func, self.loop, replace(self.loop, body=plain))
        return func, Place(plain, plain, None), buffer

    def relaxed(self, buffer: Buffer) -> AbstractSet[Var]:
        """The loops around over threads that share a buffer."""
        sharing = sharing_of(buffer.scope, in_kernel=False)
        around = (*path_to(self.func.body, self.loop), self.loop)
        threads = [s for s in around if isinstance(s, For) and s.thread is not None]
        if sharing is Sharing.THREAD:
            return frozenset()
        in_block = sharing is not Sharing.ALL
        return frozenset(s.var for s in threads if not (in_block and str(s.thread).startswith("blockIdx")))

    def rewrite(self, access: BufferLoad, box: Sequence[Range], *, before: bool) -> Rewrite:
        """The function with the block in the loop, over a box of the buffer."""
        ranges = {i: over for i, over in zip(access.indices, box, strict=True) if isinstance(i, Var)}
        moved = self.over(ranges)
        body = put(self.func.with_body(self.loop.body), self.nest, NOTHING).body
        parts = list(body.body) if isinstance(body, Seq) else [body]
        touched = [access.buffer.data in (data_read(s) if before else data_written(s)) for s in parts]
        where = touched.index(True) if before and True in touched else len(parts) - touched[::-1].index(True)
        parts.insert(where, moved.stmt)
        without = put(self.func, self.loop, replace(self.loop, body=seq(*parts)))
        if not any(node is self.nest for node in walk(self.loop)):
            without = put(without, self.nest, NOTHING)
        new = apart(without)
        return Rewrite(self.func, new, Witness(self.instances(new, moved)))

    def over(self, ranges: Mapping[Var, Range]) -> _Moved:
        """The block in new loops, over these ranges of its iterators; others keep their domains."""
        taken = names_of(put(self.func, self.nest, NOTHING))
        scope = scope_around(self.func, self.loop).with_range(self.loop.var, self.loop.start, self.loop.extent)
        loops: list[For] = []
        bindings: list[Expr] = []
        guards: list[Expr] = []
        for position, v in enumerate(self.block.iter_vars):
            over = ranges.get(v.var, v.domain)
            start, extent = over.start, over.extent
            binding: Expr = start
            if extent != const(1, extent.dtype):
                variable = fresh_variable(f"ax{position}", v.var, taken)
                loops.append(For(variable, const(0, variable.dtype), extent, ForKind.SERIAL, NOTHING))
                scope = scope.with_range(variable, loops[-1].start, extent)
                binding = variable if is_zero(start) else start + variable
            bindings.append(binding)
            if v.var in ranges:
                end = v.domain.extent if is_zero(v.domain.start) else v.domain.start + v.domain.extent
                needed = (binding >= v.domain.start, binding < end)
                guards += [part for part in needed if not scope.proves(part)]
        values = self.own.old_loops(bindings)
        guards += [part for c in self.own.guards() if not scope.proves(part := substitute(c, values))]
        iter_vars = tuple(replace(v, binding=b) for v, b in zip(self.block.iter_vars, bindings, strict=True))
        block = replace(self.block, iter_vars=iter_vars, where=logical_and(*dict.fromkeys(guards)))
        return _Moved(nest(loops, block), values)

    def instances(self, new: PrimFunc, moved: _Moved) -> tuple[InstanceMap, ...]:
        """Each store computes what it computed, in the loops of its names; those of the block in its new loops."""
        ours = {id(store) for store in stores_in(self.block)}
        own = {id(loop) for loop in self.own.loops}
        old_loops = loops_of_stores(self.func.body)
        numbers = {id(store): number for number, store in enumerate(stores_in(self.func.body))}
        maps: list[InstanceMap] = []
        for number, (store, loops) in enumerate(zip(stores_in(new.body), loops_of_stores(new.body), strict=True)):
            origin = numbers[id(store)]
            is_ours = id(store) in ours
            outputs = tuple(
                moved.values[loop.var] if is_ours and id(loop) in own else loop.var for loop in old_loops[origin]
            )
            maps.append(InstanceMap(number, origin, IndexMap(tuple(loop.var for loop in loops), outputs)))
        return tuple(maps)


@dataclass(frozen=True, slots=True)
class _Moved:
    """The block in its new loops; `values` give its old loops over them."""

    stmt: Stmt
    values: Mapping[Var, Expr]


def _written_out(stmt: Stmt) -> Stmt:
    """A statement with the iterators of its blocks replaced by what they are bound to."""

    def visit(node: Node) -> Node:
        if isinstance(node, Block):
            inner = substitute(body_of(node), {v.var: v.binding for v in node.iter_vars})
            return IfThenElse(node.where, written) if isinstance(written := visit(inner), Stmt) else inner
        return map_children(node, visit) if isinstance(node, Stmt) else node

    result = visit(stmt)
    assert isinstance(result, Stmt)
    return result
