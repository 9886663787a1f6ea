"""Temporaries, which no caller sees: compacted to the touched region, allocated where they are used, or doubled.

Source: TVM's RFC `clarifying-buffer-declaration-and-access` (aliases); compaction of allocations, upstream's pass.
Source: TVM's RFC `buffer-physical-layout` (a transform of a buffer's shape that comes before flattening).
Source: TVM's RFC `clarifying-buffer-declaration-and-access` (allocations and their scope); upstream plans the place of
allocations itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import ClassVar

from layoutproof.ir.buffer import Buffer, BufferLoad, Range
from layoutproof.ir.diagnostic import counted, error
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import Broadcast, Expr, IntImm, Ramp, Var, const, is_zero
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.primfunc import AXIS_SEPARATORS, LAYOUT, LAYOUT_TRANSFORMATIONS, PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import NOTHING, Allocate, Attributes, Block, BufferStore, For, IterKind, IterVar, Stmt
from layoutproof.ir.visit import free_variables, fresh, map_children, mapped, walk
from layoutproof.lowering import codes
from layoutproof.lowering.arith.affine import affine_of, expression_of
from layoutproof.lowering.arith.known_facts import constants_of
from layoutproof.lowering.caching.footprint import touched_box
from layoutproof.lowering.caching.stage import Place, Redirection, apart
from layoutproof.lowering.layout.separators import stated_separators
from layoutproof.lowering.layout.transform_layout import check_alone
from layoutproof.lowering.loops.nest import LoopName, find_loop, fresh_variable, names_of, put
from layoutproof.lowering.passes.base import ArgumentKind, Pass, option
from layoutproof.lowering.passes.effects import uses_buffer
from layoutproof.lowering.passes.find import find_buffer
from layoutproof.lowering.passes.witness_maps import rewrite_of


def find_temporary(func: PrimFunc, name: str) -> tuple[Buffer, Allocate | Block]:
    """A buffer, and the statement that allocates it.

    Raises LayoutproofError for an unknown name, a parameter, memory that other buffers or calls see, and a layout
    transform of the buffer that waits in an attribute.
    """
    buffer = find_buffer(func, name)
    if any(b.data == buffer.data for b in func.buffers):
        message = (
            f"{name} is memory of the caller; only a buffer that the function allocates can be given another shape"
        )
        raise error(codes.NOT_TEMPORARY, message, buffer.span)
    check_alone(func, buffer)
    waiting = func.attrs.get(LAYOUT_TRANSFORMATIONS)
    if isinstance(waiting, Attributes) and buffer.data.name in waiting:
        message = (
            f"a layout transform of {name} waits in the attribute {LAYOUT_TRANSFORMATIONS}, and it is about the shape "
            "as it is"
        )
        raise error(codes.NOT_TEMPORARY, message, buffer.span, help="apply_buffer_transforms comes first")
    for node in walk(func.body):
        if (isinstance(node, Allocate) and node.buffer == buffer) or (
            isinstance(node, Block) and buffer in node.alloc_buffers
        ):
            return buffer, node
    raise error(codes.NOT_TEMPORARY, f"nothing in {func.name} allocates {name}", buffer.span)


def reshaped(func: PrimFunc, buffer: Buffer, shape: tuple[Expr, ...], separators: tuple[int, ...]) -> Buffer:
    """The buffer with another shape. Memory with a layout record gets a new name, since the record no longer holds."""
    records = func.attrs.get(LAYOUT)
    recorded = isinstance(records, Attributes) and buffer.data.name in records
    data = Var(fresh(f"{buffer.data.name}_1", names_of(func)), HANDLE) if recorded else buffer.data
    return replace(buffer, shape=shape, data=data, axis_separators=separators)


def reallocated(func: PrimFunc, old: Buffer, new: Buffer) -> PrimFunc:
    """The function with `new` allocated instead of `old`, also in attributes; accesses stay as they are."""

    def visit(node: Node) -> Node | Steps[Node, Node]:
        if isinstance(node, Allocate) and node.buffer == old:
            return replace(node, buffer=new)
        if isinstance(node, Block) and old in node.alloc_buffers:
            return replace(node, alloc_buffers=tuple(new if b == old else b for b in node.alloc_buffers))
        return mapped(node) if isinstance(node, Stmt) else node

    body = trampoline(visit, func.body)
    assert isinstance(body, Stmt)
    attrs = without_entry(func.attrs, LAYOUT, old.data.name) if old.data != new.data else func.attrs
    separators = attrs.get(AXIS_SEPARATORS)
    if isinstance(separators, Attributes) and old.data.name in separators:
        attrs = attrs.with_value(
            AXIS_SEPARATORS, separators.without(old.data.name).with_value(new.data.name, new.axis_separators)
        )
    return replace(func, body=body, attrs=attrs)


def without_entry(attrs: Attributes, key: str, name: str) -> Attributes:
    """The attributes without one entry of a table; an empty table is left out."""
    table = attrs.get(key)
    if not isinstance(table, Attributes) or name not in table:
        return attrs
    rest = table.without(name)
    return attrs.with_value(key, rest) if rest else attrs.without(key)


@dataclass(frozen=True)
class CompactBuffer(Pass):
    """Shrink a temporary to the box of it that is touched.

    The box follows from loops, domains of iterators and branches inside the statement that allocates the buffer: memory
    allocated for each tile is as large as a tile. An axis without known bounds stays whole.
    """

    primitive: ClassVar[str] = "compact_buffer"
    buffer: str = field(metadata=option(ArgumentKind.NAME))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the smaller buffer; unchanged if all of it is touched.

        Raises LayoutproofError for a buffer that is not allocated by the function, or whose memory something else sees.
        """
        buffer, home = find_temporary(func, self.buffer)
        box = touched_box(func, Place(home.body, home.body, None), buffer)
        symbols = set(constants_of(func))
        ranges = tuple(
            r if set(free_variables(r.extent)) <= symbols else Range(const(0, e.dtype), e)
            for r, e in zip(box, buffer.shape, strict=True)
        )
        shape = tuple(r.extent for r in ranges)
        if shape == buffer.shape:
            return rewrite_of(func, func)
        separators = stated_separators(func).get(buffer.data.name, buffer.axis_separators)
        new = reshaped(func, buffer, shape, separators)
        starts = [r.start for r in ranges]
        redirection = Redirection(
            buffer, new, True, lambda indices: tuple(_less(i, s) for i, s in zip(indices, starts, strict=True))
        )
        moved = put(func, home.body, redirection.statement(home.body))
        return rewrite_of(func, apart(reallocated(moved, buffer, new)))


def _less(index: Expr, start: Expr) -> Expr:
    """An index relative to the start of the box."""
    if is_zero(start):
        return index
    if isinstance(index, Ramp):
        return replace(index, base=_less(index.base, start))
    if isinstance(index, Broadcast):
        return replace(index, value=_less(index.value, start))
    return expression_of(affine_of(index) - affine_of(start), index.dtype)


@dataclass(frozen=True)
class SinkAllocation(Pass):
    """Allocate a temporary anew in each iteration of a loop around all of its uses.

    Refused if an iteration reads what another one left there. Threads of a parallel loop then have memory of their own,
    and `compact_buffer` can shrink it to the footprint of one iteration: of `shared` memory that stands in the loops
    over blocks to that of one block, of `local` memory in the loops over threads to that of one thread.
    """

    primitive: ClassVar[str] = "sink_allocation"
    buffer: str = field(metadata=option(ArgumentKind.NAME))
    block: str = field(metadata=option(ArgumentKind.NAME))
    loop: LoopName = field(metadata=option(ArgumentKind.LOOP))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the allocation inside of the loop.

        Raises LayoutproofError for unknown names, a buffer that the function does not allocate or whose memory
        something else sees, one that a block allocates (blocks are lowered first), a loop outside of the allocation,
        and uses of the buffer outside of the loop.
        """
        buffer, home = find_temporary(func, self.buffer)
        if isinstance(home, Block):
            message = f"{self.buffer} is allocated by block {home.name}; allocations are moved once blocks are lowered"
            raise error(codes.NOT_TEMPORARY, message, buffer.span, help="lower_blocks comes first")
        loop = find_loop(func, self.block, self.loop)
        if not any(node is loop for node in walk(home.body)):
            message = f"loop {loop.var.name} is not inside of the statement that allocates {self.buffer}"
            raise error(codes.NOT_IN_BLOCK, message, loop.span)
        around = func.with_body(home.body)
        if _uses(put(around, loop, NOTHING).body, buffer):
            message = f"{self.buffer} is used outside of loop {loop.var.name} too, and would not be there"
            raise error(codes.NOT_IN_BLOCK, message, buffer.span, help="name a loop around all of its uses")
        inside = replace(loop, body=Allocate(buffer, loop.body))
        return rewrite_of(func, put(func, home, put(around, loop, inside).body))


def _uses(node: Node, buffer: Buffer) -> bool:
    return any(isinstance(n, BufferLoad | BufferStore) and n.buffer.data == buffer.data for n in walk(node))


@dataclass(frozen=True)
class SetScope(Pass):
    """Put a temporary into memory of another scope: `global`, `shared` (one a block of threads) or `local` (one a
    thread).

    Refused if a thread then reads what another one left in memory that is its own.
    """

    primitive: ClassVar[str] = "set_scope"
    buffer: str = field(metadata=option(ArgumentKind.NAME))
    scope: str = field(metadata=option(ArgumentKind.NAME))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the buffer in the scope. Raises LayoutproofError for a buffer that the function does not
        allocate or whose memory something else sees.
        """
        buffer, home = find_temporary(func, self.buffer)
        return _in_place_of(func, buffer, replace(buffer, scope=self.scope), home)


@dataclass(frozen=True)
class StorageAlign(Pass):
    """Lengthen a temporary so that steps along one axis are `factor * n + offset` elements apart.

    Rows of 32 floats in shared memory, all of which start in one bank, are 33 apart with `axis=0, factor=32, offset=1`.
    """

    primitive: ClassVar[str] = "storage_align"
    buffer: str = field(metadata=option(ArgumentKind.NAME))
    axis: int = field(metadata=option(ArgumentKind.INTEGER))
    factor: int = field(metadata=option(ArgumentKind.INTEGER))
    offset: int = field(default=0, metadata=option(ArgumentKind.INTEGER))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the longer buffer.

        Raises LayoutproofError for a buffer that the function does not allocate or whose memory something else sees, an
        axis that is none or the last one, axes after it whose lengths are not known, and a step that cannot be had.
        """
        buffer, home = find_temporary(func, self.buffer)
        if not 0 <= self.axis < buffer.rank - 1:
            message = f"{self.buffer} has {counted(buffer.rank, 'axis', 'axes')}; steps along the last one are 1 apart"
            raise error(codes.ARGUMENT_TYPE, message, buffer.span)
        if self.factor < 1 or not 0 <= self.offset < self.factor:
            message = f"steps of {self.factor}*n + {self.offset} are none: 0 <= offset < factor is expected"
            raise error(codes.ARGUMENT_TYPE, message, buffer.span)
        inner = [extent.value for extent in buffer.shape[self.axis + 1 :] if isinstance(extent, IntImm)]
        if len(inner) != buffer.rank - self.axis - 1:
            message = f"the axes of {self.buffer} after axis {self.axis} have no constant lengths"
            raise error(codes.ARGUMENT_TYPE, message, buffer.span, help="compact_buffer makes it as large as a tile")
        length, rest = inner[0], prod(inner[1:])
        longer = next((n for n in range(length, length + self.factor) if n * rest % self.factor == self.offset), None)
        if longer is None:
            message = (
                f"no length of axis {self.axis + 1} makes steps along axis {self.axis} {self.factor}*n + {self.offset}"
            )
            raise error(codes.ARGUMENT_TYPE, message, buffer.span)
        shape = list(buffer.shape)
        shape[self.axis + 1] = const(longer, shape[self.axis + 1].dtype)
        separators = stated_separators(func).get(buffer.data.name, buffer.axis_separators)
        return _in_place_of(func, buffer, reshaped(func, buffer, tuple(shape), separators), home)


def _in_place_of(func: PrimFunc, old: Buffer, new: Buffer, home: Allocate | Block) -> Rewrite:
    """The function with another buffer at the same indices."""
    if new == old:
        return rewrite_of(func, func)
    moved = put(func, home.body, Redirection(old, new, True).statement(home.body))
    return rewrite_of(func, apart(reallocated(moved, old, new)))


@dataclass(frozen=True)
class InjectDoubleBuffer(Pass):
    """Give a temporary a first axis of 2, which iterations of a loop around the block take in turns.

    The values of one iteration stay while the next one writes. Blocks in the loop get an iterator for it if they have
    none. A buffer is doubled before it is flattened: the new axis is in the first axis group.
    """

    primitive: ClassVar[str] = "inject_double_buffer"
    block: str = field(metadata=option(ArgumentKind.NAME))
    buffer: str = field(metadata=option(ArgumentKind.NAME))
    loop: LoopName = field(metadata=option(ArgumentKind.LOOP))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the doubled buffer.

        Raises LayoutproofError for unknown names, a buffer that is not allocated outside the loop or is used outside
        it, and one whose memory something else sees.
        """
        loop = find_loop(func, self.block, self.loop)
        buffer, home = find_temporary(func, self.buffer)
        if any(node is home for node in walk(loop)):
            message = (
                f"{self.buffer} is allocated anew in each iteration of loop {loop.var.name}: there is nothing to take "
                "in turns"
            )
            raise error(codes.LOOP_OUTSIDE, message, home.span)
        if not uses_buffer(loop, buffer):
            raise error(codes.NOT_IN_BLOCK, f"loop {loop.var.name} neither reads nor writes {self.buffer}", loop.span)
        if uses_buffer(put(func, loop, replace(loop, body=NOTHING)).body, buffer):
            message = (
                f"{self.buffer} is used outside loop {loop.var.name} too, where no iteration says which copy is meant"
            )
            raise error(codes.LOOP_OUTSIDE, message, loop.span)
        separators = stated_separators(func).get(buffer.data.name, buffer.axis_separators)
        first = const(2, buffer.shape[0].dtype) if buffer.shape else const(2)
        new = reshaped(func, buffer, (first, *buffer.shape), tuple(s + 1 for s in separators))
        doubling = _Doubling(loop, buffer, new, names_of(func))
        moved = put(func, loop, doubling.statement(loop))
        return rewrite_of(func, apart(reallocated(moved, buffer, new)))


@dataclass(slots=True)
class _Doubling:
    loop: For
    old: Buffer
    new: Buffer
    taken: set[str]

    def statement(self, stmt: Stmt) -> Stmt:
        """The statement with each access at the copy of its iteration."""
        if isinstance(stmt, Block):
            return self.block(stmt) if uses_buffer(stmt, self.old) else stmt
        if isinstance(stmt, BufferStore):
            return self.redirection(self.loop.var).statement(stmt)

        def visit(node: Node) -> Node:
            if isinstance(node, Stmt):
                return self.statement(node)
            return self.redirection(self.loop.var).expression(node) if isinstance(node, Expr) else node

        return map_children(stmt, visit)

    def block(self, block: Block) -> Block:
        """A block with an iterator that says which iteration it is in."""
        known = next((v.var for v in block.iter_vars if v.binding == self.loop.var), None)
        if known is None:
            known = fresh_variable(f"v_{self.loop.var.name}", self.loop.var, self.taken)
            own = IterVar(known, IterKind.SPATIAL, Range(self.loop.start, self.loop.extent), self.loop.var)
            block = replace(block, iter_vars=(*block.iter_vars, own))
        result = self.redirection(known).statement(block)
        assert isinstance(result, Block)
        return result

    def redirection(self, iteration: Var) -> Redirection:
        turn: Expr = iteration % const(2, iteration.dtype)
        return Redirection(self.old, self.new, True, lambda indices: (turn, *indices))
