"""Stages: a block of its own that visits a box, beside the nest of another block, which then uses the stage's
buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from layoutproof.ir.buffer import Buffer, BufferLoad, BufferRegion, Range
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import TRUE, Expr, Var, const, is_zero
from layoutproof.ir.intrinsics import Assume, OpaqueCall
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.primfunc import APART, PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import (
    Allocate,
    AttrStmt,
    Block,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IterKind,
    IterVar,
    Let,
    MatchBuffer,
    Stmt,
    seq,
)
from layoutproof.ir.visit import children, fresh, loads_in, map_children, mapped, stores_in, walk
from layoutproof.lowering import codes
from layoutproof.lowering.layout.transform_layout import ROOT
from layoutproof.lowering.loops.nest import fresh_variable, path_to, put
from layoutproof.lowering.passes.find import find_block
from layoutproof.lowering.passes.witness_maps import rewrite_of

Indices = tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Redirection:
    """`new` for `old`; `indices` gives the new cell of an access, `stores` says whether stores move too.

    If they do not, assumptions stay about the old buffer: what is assumed of a copy does not follow by itself.
    """

    old: Buffer
    new: Buffer
    stores: bool
    indices: Callable[[Indices], Indices] = lambda indices: indices

    def statement(self, stmt: Stmt) -> Stmt:
        """The statement with its accesses redirected."""
        result = trampoline(self._step, stmt)
        assert isinstance(result, Stmt)
        return result

    def expression(self, expr: Expr) -> Expr:
        """The expression with its loads redirected."""
        result = self._visit(expr)
        assert isinstance(result, Expr)
        return result

    def _step(self, node: Node) -> Node | Steps[Node, Node]:
        is_inner = isinstance(node, BufferStore | Block) or (is_assumption(node) and not self.stores)
        return mapped(node) if isinstance(node, Stmt) and not is_inner else self._visit(node)

    def _visit(self, node: Node) -> Node:
        if isinstance(node, BufferLoad) and node.buffer == self.old:
            return replace(node, buffer=self.new, indices=self._inner(node.indices))
        if isinstance(node, BufferStore):
            value = self.expression(node.value)
            if node.buffer == self.old and self.stores:
                return replace(node, buffer=self.new, indices=self._inner(node.indices), value=value)
            return replace(node, indices=self._expressions(node.indices), value=value)
        if is_assumption(node) and not self.stores:
            return node
        if isinstance(node, Block):
            inner = map_children(replace(node, reads=None, writes=None), partial(trampoline, self._step))
            reads = None if node.reads is None else tuple(dict.fromkeys(map(self._region, node.reads)))
            writes = node.writes
            if writes is not None and self.stores:
                writes = tuple(dict.fromkeys(map(self._region, writes)))
            return replace(inner, reads=reads, writes=writes)
        return map_children(node, self._visit)

    def _expressions(self, expressions: Sequence[Expr]) -> Indices:
        return tuple(self.expression(e) for e in expressions)

    def _inner(self, indices: Indices) -> Indices:
        return self.indices(self._expressions(indices))

    def _region(self, region: BufferRegion) -> BufferRegion:
        """The new cell if each range is one cell; else, unless the indices stay, all of the new buffer."""
        if region.buffer != self.old:
            return region
        starts = tuple(r.start for r in region.ranges)
        if self.new.shape == self.old.shape and self.indices(starts) == starts:
            return replace(region, buffer=self.new)
        if all(r.extent == const(1, r.extent.dtype) for r in region.ranges):
            return BufferRegion.cell(self.new, self.indices(starts))
        return BufferRegion(self.new, tuple(Range(const(0, e.dtype), e) for e in self.new.shape))


def is_assumption(node: Node) -> bool:
    """Whether a statement only assumes something."""
    return isinstance(node, Evaluate) and isinstance(node.value, Assume)


def accesses_of(node: Node, buffer: Buffer) -> Iterator[BufferLoad | BufferStore]:
    """The loads from a buffer and the stores to it, those in assumptions left out."""
    if is_assumption(node):
        return
    if isinstance(node, BufferLoad | BufferStore) and node.buffer == buffer:
        yield node
    for child in children(node):
        yield from accesses_of(child, buffer)


def check_visible(stmt: Stmt, buffer: Buffer) -> None:
    """Raise LayoutproofError if a statement uses the buffer's memory in a way that cannot be redirected."""
    for node in walk(stmt):
        if isinstance(node, MatchBuffer) and node.source.buffer == buffer:
            raise error(
                codes.ALIASES,
                f"{node.buffer.name} is a view of a region of {buffer.name} and would be left behind",
                node.span,
            )
        if isinstance(node, OpaqueCall) and any(n == buffer.data for n in walk(node)):
            raise error(
                codes.POINTER_USE,
                f"{buffer.name} is handed to {node.function}, which cannot be given a copy",
                node.span,
            )
    if any(_pointers(stmt, buffer.data)):
        raise error(
            codes.POINTER_USE,
            f"the pointer of {buffer.name} is used by itself, where its copy would not be seen",
            buffer.span,
        )


def _pointers(node: Node, data: Var) -> Iterator[bool]:
    """One entry for each mention of the data variable outside buffers."""
    if isinstance(node, Buffer):
        return
    if node == data:
        yield True
    for child in children(node):
        yield from _pointers(child, data)


Cell = tuple[Var, ...]


@dataclass(frozen=True, slots=True)
class Box:
    """What a stage visits: a box of cells, within the extents of a buffer."""

    ranges: tuple[Range, ...]
    shape: tuple[Expr, ...]


def stage(
    name: str,
    box: Box,
    taken: set[str],
    make: Callable[[Cell], Stmt],
    where: Callable[[Sequence[Expr]], Expr] | None = None,
) -> Stmt:
    """A block that runs `make(cell)` for each cell of a box; under `where(cell over loops)`, if it is given.

    `taken` are names in use, and get those of the stage. The block's regions are the cells that its accesses name.
    """
    loops: list[Var] = []
    iter_vars: list[IterVar] = []
    for axis, (over, extent) in enumerate(zip(box.ranges, box.shape, strict=True)):
        loop, value = (fresh_variable(name, extent, taken) for name in (f"ax{axis}", f"v{axis}"))
        binding = loop if is_zero(over.start) else loop + over.start
        loops.append(loop)
        iter_vars.append(IterVar(value, IterKind.SPATIAL, Range(const(0, extent.dtype), extent), binding))
    cell = tuple(i.var for i in iter_vars)
    body = make(cell)
    reads = tuple(dict.fromkeys(BufferRegion.cell(load.buffer, load.indices) for load in loads_in(body)))
    writes = tuple(dict.fromkeys(BufferRegion.cell(store.buffer, store.indices) for store in stores_in(body)))
    guard = TRUE if where is None else where([i.binding for i in iter_vars])
    result: Stmt = Block(name, tuple(iter_vars), body, where=guard, reads=reads, writes=writes)
    for loop, over in reversed(list(zip(loops, box.ranges, strict=True))):
        result = For(loop, const(0, loop.dtype), over.extent, ForKind.SERIAL, result)
    return result


def copy_of(target: Buffer, source: Buffer) -> Callable[[Cell], Stmt]:
    """`target[cell] = source[cell]`."""
    return lambda cell: BufferStore(target, cell, BufferLoad(source, cell))


def whole(buffer: Buffer) -> Box:
    """All of a buffer."""
    return Box(tuple(Range(const(0, e.dtype), e) for e in buffer.shape), buffer.shape)


def variant(buffer: Buffer, name: str, scope: str, shape: tuple[Expr, ...] | None = None) -> Buffer:
    """A compact buffer of the same element type in memory of its own; of the same shape where none is given."""
    extents = buffer.shape if shape is None else shape
    return Buffer(name, buffer.dtype, extents, Var(f"{name}_data", HANDLE), scope=scope)


def name_of_cache(buffer: Buffer, suffix: str, taken: set[str]) -> str:
    """A name for a cache and its stage that is not in use, nor is that of its data; both then are."""
    base = f"{buffer.name}_{suffix.replace('.', '_').replace(':', '_')}"
    chosen = fresh(base, taken | {name.removesuffix("_data") for name in taken})
    taken |= {chosen, f"{chosen}_data"}
    return chosen


@dataclass(frozen=True, slots=True)
class Place:
    """A block (the whole body for `root`), its nest, and the block around that, which allocates."""

    target: Stmt
    nest: Stmt
    home: Block | None

    def put(
        self, func: PrimFunc, target: Stmt, *, before: Sequence[Stmt] = (), after: Sequence[Stmt] = (), allocate: Buffer
    ) -> PrimFunc:
        """The function with `target` replaced, stages before and after its nest, and a buffer allocated around them."""
        return self.put_nest(func, put(func.with_body(self.nest), self.target, target).body, before, after, (allocate,))

    def put_nest(
        self,
        func: PrimFunc,
        nest: Stmt,
        before: Sequence[Stmt] = (),
        after: Sequence[Stmt] = (),
        allocate: Sequence[Buffer] = (),
    ) -> PrimFunc:
        """The function with another nest, stages around it, and buffers allocated."""
        stages = seq(*before, nest, *after)
        if self.home is None:
            body = put(func, self.nest, stages).body
            return func.with_body(_allocated(body, allocate))
        inner = put(func.with_body(self.home.body), self.nest, stages).body
        return put(func, self.home, replace(self.home, body=inner, alloc_buffers=(*self.home.alloc_buffers, *allocate)))


def place_of(func: PrimFunc, name: str) -> Place:
    """Where a block is. Raises LayoutproofError if there is none of that name, or two.

    The nest is the outermost loop inside the innermost enclosing block, or the block itself; branches and lets around
    the loops stay around the stages.
    """
    if name == ROOT:
        body = _in_shell(func.body)
        home = next((s for s in reversed(path_to(func.body, body)) if isinstance(s, Block)), None)
        return Place(body, body, home)
    target = find_block(func, name)
    path = path_to(func.body, target)
    start = max((n + 1 for n, s in enumerate(path) if isinstance(s, Block)), default=0)
    home = next((s for s in reversed(path) if isinstance(s, Block)), None)
    return Place(target, next((s for s in path[start:] if isinstance(s, For)), target), home)


def _in_shell(stmt: Stmt) -> Stmt:
    """The body below declarations: allocations, aliases, a root block."""
    while isinstance(stmt, Allocate | DeclBuffer | AttrStmt | Let) or (isinstance(stmt, Block) and stmt.is_root):
        stmt = stmt.body
    return stmt


def _allocated(body: Stmt, buffers: Sequence[Buffer]) -> Stmt:
    if not buffers:
        return body
    if any(isinstance(node, Block) for node in walk(body)):
        return Block(ROOT, (), body, alloc_buffers=tuple(buffers))
    for buffer in reversed(buffers):
        body = Allocate(buffer, body)
    return body


def staged_rewrite(old: PrimFunc, moved: PrimFunc, new: PrimFunc) -> Rewrite:
    """The rewrite to `new`, in which each store of `moved` (by identity) computes the old one of its number; other
    stores are extra.
    """
    numbers = {id(store): number for number, store in enumerate(stores_in(moved.body))}
    return rewrite_of(old, new, [numbers.get(id(store)) for store in stores_in(new.body)])


def apart(func: PrimFunc) -> PrimFunc:
    """The function with the demand that its parameters do not overlap, if they could: else no source of a value is
    known.
    """
    written = {store.buffer.data for store in stores_in(func.body)}
    if func.noalias or len(func.buffers) < 2 or not any(b.data in written for b in func.buffers):
        return func
    return replace(func, attrs=func.attrs.with_value(APART, True))


def check_outside(place: Place, block: str, buffer: Buffer) -> None:
    """Raise LayoutproofError if a buffer is allocated in the nest of a block, so that it exists only there."""
    for node in walk(place.nest):
        if (isinstance(node, Allocate) and node.buffer == buffer) or (
            isinstance(node, Block) and buffer in node.alloc_buffers
        ):
            message = (
                f"{buffer.name} is allocated inside the loops of block {block}, and is not there before or after them"
            )
            raise error(codes.NOT_IN_BLOCK, message, node.span, help="name a block that uses it")
