"""What is only another way to write a program, written out.

A region that a block matches as a buffer of its own (`match_buffer`) is sugar: an access of it is one of the buffer
behind it, at the place where the region begins, and its pointer, offset and strides are those of that place. A let of
one store is its value, where that is computed alike, and an expression without an effect that is evaluated is nothing.
What cannot be written out is left as it is, and refused later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from layoutproof.ir.buffer import Buffer, BufferLoad, BufferRegion, Range
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import Binary, Expr, IntImm, Var, widen
from layoutproof.ir.interp.analysis import is_index_like
from layoutproof.ir.intrinsics import Assume, OpaqueCall, Undef
from layoutproof.ir.node import FloatToInteger, Node, Steps, trampoline
from layoutproof.ir.operators import DIVISIONS, BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import NOTHING, Block, BufferStore, DeclBuffer, Evaluate, Let, MatchBuffer, Stmt
from layoutproof.ir.visit import (
    always_evaluates,
    bound_variables,
    children,
    free_variables,
    holds_any,
    kinds_in,
    map_children,
    mapped,
    substitute,
    walk,
)


def written_out(func: PrimFunc) -> PrimFunc:
    """The same program without what can be written out; the function itself where there is nothing."""
    return _without_trifles(without_views(func))


# Calls that compute an address or a type, and touch no memory.
_ADDRESSES = frozenset(("type_annotation", "tvm_access_ptr", "address_of"))
_MAY_TRAP = frozenset((*DIVISIONS, BinaryOp.SHL, BinaryOp.SHR))


def _without_trifles(func: PrimFunc) -> PrimFunc:
    def visit(node: Node) -> Node | Steps[Node, Node]:
        if isinstance(node, Let) and isinstance(node.body, BufferStore):
            return _said_once(node, node.body)
        if isinstance(node, Evaluate) and _has_no_effect(node.value):
            return NOTHING
        return mapped(node) if isinstance(node, Stmt) else node

    body = trampoline(visit, func.body)
    assert isinstance(body, Stmt)
    return func if body is func.body else replace(func, body=body)


def _said_once(let: Let, store: BufferStore) -> Stmt:
    """A store with the value of a let around it in its place; the let where that may be another value each time."""
    uses = sum(part == let.var for part in walk(store))
    fresh = any(isinstance(part, Undef | OpaqueCall) for part in walk(let.value))
    if uses == 0 or (fresh and uses > 1) or let.var.dtype == HANDLE:
        return let
    if not always_evaluates(store.value, let.var) and not any(
        part == let.var for i in store.indices for part in walk(i)
    ):
        return let
    if not _is_computed_alike(let, store, uses):
        return let
    return replace(substitute(store, {let.var: let.value}), span=store.span)


def _is_computed_alike(let: Let, store: BufferStore, uses: int) -> bool:
    """Whether the arithmetic of a let's value is exact where its name stands, if it is so in the let, and wraps if it
    does there: index arithmetic must fit its type in both, unless it is stored; arithmetic on data only in an index.
    """
    if isinstance(let.value, Var | IntImm | BufferLoad):
        return True
    stored = _outside_indices(store.value, let.var)
    return stored == 0 if is_index_like(let.value) else stored == uses


def _outside_indices(node: Node, var: Var) -> int:
    """How often a variable stands in a value, not in the index of a load."""
    if isinstance(node, BufferLoad):
        return 0
    return 1 if node == var else sum(_outside_indices(part, var) for part in children(node))


def _has_no_effect(expr: Expr) -> bool:
    """Whether evaluating an expression changes nothing, and has a result."""
    if any(isinstance(part, Binary) and part.op in _MAY_TRAP for part in walk(expr)) or (
        FloatToInteger in kinds_in(expr)
    ):
        return False
    calls = [part for part in walk(expr) if isinstance(part, OpaqueCall | BufferLoad | Assume)]
    return all(isinstance(call, OpaqueCall) and call.function in _ADDRESSES for call in calls)


def without_views(func: PrimFunc) -> PrimFunc:
    """The same program without matched regions, if all of them can be written out; else the function itself."""
    return _written(func, None)


def regions_as_memory(func: PrimFunc) -> tuple[PrimFunc, frozenset[Buffer]]:
    """The program with memory of its own for each matched region, as large as that, and these memories: an access
    outside of one is an access outside of a region. Without any where regions cannot be written out.
    """
    memories: dict[Buffer, Buffer] = {}
    return _written(func, memories), frozenset(memories.values())


def _written(func: PrimFunc, memories: dict[Buffer, Buffer] | None) -> PrimFunc:
    if not holds_any(func.body, MatchBuffer):
        return func
    sizes = (size for buffer in func.buffers for size in (*buffer.shape, *buffer.strides, buffer.elem_offset))
    known = {*func.params, *bound_variables(func.body), *(v for size in sizes for v in free_variables(size))}
    try:
        body = trampoline(_Writing({}, {}, frozenset(known), memories).step, func.body)
    except _NotWritten:
        return func
    assert isinstance(body, Stmt)
    return replace(func, body=body)


class _NotWritten(Exception):
    """A region that an access of its buffer does not determine."""


@dataclass(frozen=True, slots=True)
class _Writing:
    """`regions` are the boxes that buffers stand for; `values` what their pointers, offsets and strides are, `known`
    the variables that have a meaning in the function. `memories`: where regions get memory of their own, that memory.
    """

    regions: Mapping[Buffer, BufferRegion]
    values: Mapping[Var, Expr]
    known: frozenset[Var]
    memories: dict[Buffer, Buffer] | None

    def step(self, node: Node) -> Node | Steps[Node, Node]:
        if not isinstance(node, Stmt) or isinstance(node, Block | BufferStore):
            return self.visit(node)
        if isinstance(node, DeclBuffer) and node.buffer.data in self.values:
            raise _NotWritten
        return mapped(node)

    def visit(self, node: Node) -> Node:
        if isinstance(node, Var):
            value = self.values.get(node)
            return node if value is None else widen(value, node.dtype)
        if isinstance(node, Block):
            return self._block(node)
        if isinstance(node, BufferLoad | BufferStore | BufferRegion) and node.buffer in self.regions:
            return self._access(node, self.regions[node.buffer])
        if isinstance(node, Stmt) and not isinstance(node, BufferStore):
            root: Node = node
            return trampoline(self.step, root)
        return map_children(node, self.visit)

    def _access(self, node: BufferLoad | BufferStore | BufferRegion, region: BufferRegion) -> Node:
        if isinstance(node, BufferRegion):
            ranges = [self._range(each) for each in node.ranges]
            first = len(region.ranges) - len(ranges)
            inner = (Range(a.start + b.start, b.extent) for a, b in zip(region.ranges[first:], ranges, strict=True))
            return BufferRegion(region.buffer, (*region.ranges[:first], *inner), span=node.span)
        places = [index for index in map(self.visit, node.indices) if isinstance(index, Expr)]
        indices = tuple(_at(region.ranges, places))
        if isinstance(node, BufferLoad):
            return BufferLoad(region.buffer, indices, span=node.span)
        value = self.visit(node.value)
        assert isinstance(value, Expr)
        return BufferStore(region.buffer, indices, value, span=node.span)

    def _range(self, node: Range) -> Range:
        start, extent = self.visit(node.start), self.visit(node.extent)
        assert isinstance(start, Expr) and isinstance(extent, Expr)
        return Range(start, extent)

    def _block(self, node: Block) -> Node:
        regions, values = dict(self.regions), dict(self.values)
        for match in node.match_buffers:
            source = _Writing(regions, values, self.known, self.memories).visit(match.source)
            assert isinstance(source, BufferRegion)
            if any(isinstance(part, BufferLoad) for part in walk(source)):
                raise _NotWritten  # The region is one, whatever the block stores.
            self._match(match.buffer, source, values)
            regions[match.buffer] = source if self.memories is None else self._as_memory(match.buffer, source)
        made = map_children(replace(node, match_buffers=()), _Writing(regions, values, self.known, self.memories).visit)
        assert isinstance(made, Block)
        own = () if self.memories is None else tuple(self.memories[match.buffer] for match in node.match_buffers)
        return replace(made, alloc_buffers=(*made.alloc_buffers, *own)) if own else made

    def _as_memory(self, buffer: Buffer, source: BufferRegion) -> BufferRegion:
        assert self.memories is not None
        shape = tuple(each.extent for each in source.ranges[len(source.ranges) - buffer.rank :])
        memory = Buffer(buffer.name, buffer.dtype, shape, buffer.data)
        self.memories[buffer] = memory
        return BufferRegion(memory, tuple(Range(IntImm(0, each.dtype), each) for each in shape))

    def _match(self, buffer: Buffer, source: BufferRegion, values: dict[Var, Expr]) -> None:
        """Give the pointer, the offset, the strides and the sizes of a matched buffer their values.

        Raises _NotWritten where the shape is not the region's, or the buffer says something else of itself.
        """
        whole, extents = source.buffer, [each.extent for each in source.ranges]
        first = len(extents) - buffer.rank
        if first < 0 or buffer.dtype != whole.dtype or any(not _is(e, 1) for e in extents[:first]):
            raise _NotWritten
        strides, offset = _strides(whole), whole.elem_offset
        for stride, each in zip(strides, source.ranges, strict=True):
            if not _is(each.start, 0):
                more = each.start if _is(stride, 1) else each.start * stride
                offset = more if _is(offset, 0) else offset + more
        values[buffer.data] = whole.data
        for mine, theirs in zip(buffer.shape, extents[first:], strict=True):
            self._equal(mine, theirs, values)
        for mine, theirs in zip(buffer.strides, strides[first:], strict=True) if buffer.strides else ():
            self._equal(mine, theirs, values)
        if not _is(buffer.elem_offset, 0):  # That is what an offset reads as which is not stated.
            self._equal(buffer.elem_offset, offset, values)

    def _equal(self, mine: Expr, theirs: Expr, values: dict[Var, Expr]) -> None:
        """Bind a variable, or see that two sizes are one."""
        if isinstance(mine, Var) and mine not in self.known:
            mine = values.setdefault(mine, theirs)
        if mine != theirs:
            raise _NotWritten


def _at(ranges: Sequence[Range], places: Sequence[Expr]) -> list[Expr]:
    """The indices of an element in the buffer behind a region; the axes that the region leaves out come first."""
    starts = [each.start for each in ranges]
    first = len(starts) - len(places)
    inner = [
        place if start == IntImm(0, start.dtype) else start + place
        for start, place in zip(starts[first:], places, strict=True)
    ]
    return [*starts[:first], *inner]


def _strides(buffer: Buffer) -> list[Expr]:
    """The strides of a buffer, row-major where it states none."""
    if buffer.strides:
        return list(buffer.strides)
    found: list[Expr] = []
    size: Expr = IntImm(1)
    for extent in reversed(buffer.shape):
        found.append(size)
        size = extent if _is(size, 1) else size * extent
    return found[::-1]


def _is(size: Expr, value: int) -> bool:
    return isinstance(size, IntImm) and size.value == value
