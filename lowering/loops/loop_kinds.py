"""Kinds of loops: parallel, vectorized, unrolled, bound to a thread axis, or streamed past the cache as one tile.

That parallel iterations do not race is proved of the resulting program. The mark of a tile changes no result: a code
generator with non-temporal stores uses them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr, IntImm, Var, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import CellMap, InstanceMap, Rewrite, Witness
from layoutproof.ir.stmt import Allocate, Block, DeclBuffer, For, ForKind, IterKind, Stmt, seq
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.threads.axes import thread_loops
from layoutproof.ir.visit import loops_of_stores, map_children, stores_in, substitute, take_fresh, walk
from layoutproof.lowering import codes
from layoutproof.lowering.layout.transform_layout import ROOT
from layoutproof.lowering.loops.nest import (
    LoopName,
    check_kind,
    find_loop,
    names_of,
    path_to,
    put,
    scope_around,
    tidied,
)
from layoutproof.lowering.passes.base import ArgumentKind, Pass, option
from layoutproof.lowering.passes.witness_maps import rewrite_of


@dataclass(frozen=True)
class Parallel(Pass):
    """Run the iterations of a loop in parallel. A refusal names two iterations that race on one cell."""

    primitive: ClassVar[str] = "parallel"
    block: str = field(metadata=option(ArgumentKind.NAME))
    loop: LoopName = field(metadata=option(ArgumentKind.LOOP))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the loop parallel. Raises LayoutproofError for an unknown loop, and for one bound to a
        thread.
        """
        return of_kind(func, find_loop(func, self.block, self.loop), ForKind.PARALLEL)


@dataclass(frozen=True)
class Vectorize(Pass):
    """Run the iterations of a loop of constant extent as lanes of one vector, refused if two lanes touch one cell.

    There is no vectorized loop around the loop or inside it.
    """

    primitive: ClassVar[str] = "vectorize"
    block: str = field(metadata=option(ArgumentKind.NAME))
    loop: LoopName = field(metadata=option(ArgumentKind.LOOP))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the loop vectorized.

        Raises LayoutproofError for an unknown loop, one that is bound to a thread or has no constant number of
        iterations, and for nested vectorized loops.
        """
        loop = find_loop(func, self.block, self.loop)
        if not isinstance(loop.extent, IntImm) or loop.extent.value < 1:
            message = f"loop {loop.var.name} has no constant number of iterations, so there is no number of lanes"
            raise error(codes.LANES, message, loop.span, help="split it first, by the number of lanes")
        other = _vectorized_with(func, loop)
        if other is not None:
            message = f"loops {loop.var.name} and {other.var.name} would both be vectorized, one in the other"
            raise error(codes.LANES, message, loop.span, help="fuse them first")
        return of_kind(func, loop, ForKind.VECTORIZED)


@dataclass(frozen=True)
class Bind(Pass):
    """Bind a loop to a thread axis: `blockIdx.x`, `threadIdx.x` (`y`, `z`), `vthread`. Its iterations run as threads.

    Loops of one kernel that are bound to one axis have one index and one number of iterations. A refusal names two
    threads that race on one cell. A loop over a reduction joins what threads computed, in any order; floats need
    `reassoc` for that. `also` are loops anywhere in the function that are bound in the same step: a block of a kernel
    that is not bound is run by every thread, and if it is a reduction, they race.
    """

    primitive: ClassVar[str] = "bind"
    block: str = field(metadata=option(ArgumentKind.NAME))
    loop: LoopName = field(metadata=option(ArgumentKind.LOOP))
    thread: str = field(metadata=option(ArgumentKind.NAME))
    also: tuple[str, ...] = field(default=(), metadata=option(ArgumentKind.NAMES))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the loops bound.

        Raises LayoutproofError for an unknown loop, one that is bound already or is vectorized or unrolled, an unknown
        axis, and one that a loop of another length in the same kernel is bound to.
        """
        new = _bound(func, find_loop(func, self.block, self.loop), self.thread)
        for name in self.also:
            new = _bound(new, find_loop(new, ROOT, name), self.thread)
        return rewrite_of(func, new)


def _bound(func: PrimFunc, loop: For, thread: str) -> PrimFunc:
    check_kind(loop)
    _check_bindable(func, loop, thread)
    return put(func, loop, replace(loop, kind=ForKind.THREAD_BINDING, thread=thread))


_AXIS = re.compile(r"(blockIdx|threadIdx)\.[xyz]|vthread(\.[xyz])?|cthread")


def _check_bindable(func: PrimFunc, loop: For, thread: str) -> None:
    if _AXIS.fullmatch(thread) is None:
        message = f"there is no thread axis {thread!r}"
        hint = "there are blockIdx.x, .y and .z, threadIdx.x, .y and .z, and vthread, vthread.x, .y and .z"
        raise error(codes.THREAD_AXIS, message, loop.span, help=hint)
    if loop.kind in (ForKind.VECTORIZED, ForKind.UNROLLED):
        message = f"loop {loop.var.name} is {loop.kind.value}, and cannot be bound to {thread}"
        raise error(codes.LOOP_KIND, message, loop.span)
    around = path_to(func.body, loop)
    root = next((s for s in around if isinstance(s, For) and s.thread is not None), loop)
    other = next((n for n in thread_loops(root) if n.thread == thread and n.extent != loop.extent), None)
    if other is not None:
        lengths = f"{expr_text(loop.extent, Style.PLAIN)} and {expr_text(other.extent, Style.PLAIN)}"
        message = f"loops {loop.var.name} and {other.var.name} of one kernel would have {lengths} threads on {thread}"
        hint = "loops of one axis have one index: split them so that they have one length"
        raise error(codes.THREAD_AXIS, message, loop.span, help=hint)


def of_kind(func: PrimFunc, loop: For, kind: ForKind) -> Rewrite:
    """The rewrite that changes the kind of one loop. Raises LayoutproofError for a loop that is bound to a thread."""
    check_kind(loop)
    return rewrite_of(func, put(func, loop, replace(loop, kind=kind)))


def _vectorized_with(func: PrimFunc, loop: For) -> For | None:
    """A vectorized loop that contains the loop, or that it contains."""
    for node in walk(func.body):
        if isinstance(node, For) and node.kind is ForKind.VECTORIZED and node is not loop:
            if any(inner is loop for inner in walk(node)) or any(inner is node for inner in walk(loop)):
                return node
    return None


STREAM = "layoutproof.stream"
"""The annotation of a loop whose nest is one tile: gathered in a small buffer, then written past the cache."""


@dataclass(frozen=True)
class Stream(Pass):
    """Mark a loop and those in it as one tile, which a target that can writes past the cache.

    A tile is best some kilobytes large, and made of runs that are contiguous in the buffer that is written.
    """

    primitive: ClassVar[str] = "stream"
    block: str = field(metadata=option(ArgumentKind.NAME))
    loop: LoopName = field(metadata=option(ArgumentKind.LOOP))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the loop marked. Raises LayoutproofError for an unknown loop, and for one bound to a
        thread.
        """
        loop = find_loop(func, self.block, self.loop)
        check_kind(loop)
        return rewrite_of(func, put(func, loop, replace(loop, annotations=loop.annotations.with_value(STREAM, True))))


def is_streamed(loop: For) -> bool:
    """Whether a loop is marked."""
    return loop.annotations.get(STREAM) is True


MAX_COPIES = 1024
"""The largest number of copies of a body that a loop is expanded to."""


@dataclass(frozen=True)
class Unroll(Pass):
    """Mark a loop as one that the compiler writes out; with `expand`, write it out here.

    Memory that the body allocates is a different one in each copy, and blocks in it are named by the iteration:
    `sum_0`, `sum_1`. A block's init stays in the copies in which the reduction may be at its start.
    """

    primitive: ClassVar[str] = "unroll"
    block: str = field(metadata=option(ArgumentKind.NAME))
    loop: LoopName = field(metadata=option(ArgumentKind.LOOP))
    expand: bool = field(default=False, metadata=option(ArgumentKind.FLAG))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the loop marked, or written out.

        Raises LayoutproofError for an unknown loop or one bound to a thread; with `expand` for one without a constant
        number of iterations, or with too many.
        """
        loop = find_loop(func, self.block, self.loop)
        if not self.expand:
            return of_kind(func, loop, ForKind.UNROLLED)
        check_kind(loop)
        count = _count(loop)
        taken = names_of(func)
        copies = [_Copy(loop, k, count, taken, _past_start(func, loop, _value_at(loop, k))) for k in range(count)]
        new = put(func, loop, seq(*(copy.body(func) for copy in copies)))
        return Rewrite(func, new, Witness(_instances(func, new, loop, copies), _cells(copies)))


def _count(loop: For) -> int:
    if not isinstance(loop.extent, IntImm):
        message = f"loop {loop.var.name} has no constant number of iterations, so it cannot be written out"
        raise error(codes.EXPANSION, message, loop.span, help="it can be marked as unrolled all the same: expand=False")
    if loop.extent.value > MAX_COPIES:
        message = f"loop {loop.var.name} has {loop.extent.value} iterations; at most {MAX_COPIES} are written out"
        raise error(codes.EXPANSION, message, loop.span, help="split it, and expand the inner part")
    return max(loop.extent.value, 0)


def _value_at(loop: For, number: int) -> Expr:
    """The loop's variable in the iteration of that number."""
    start, dtype = loop.start, loop.var.dtype
    if isinstance(start, IntImm):
        return const(start.value + number, dtype)
    return start + const(number, dtype) if number > 0 else start


def _past_start(func: PrimFunc, loop: For, value: Expr) -> frozenset[int]:
    """The blocks below, by identity, whose init never runs at this value of the loop's variable: a reduce variable is
    not at the start of its domain then.
    """
    found = set()
    for block in (n for n in walk(loop.body) if isinstance(n, Block) and n.init is not None):
        scope = scope_around(func, block)
        for v in block.iter_vars:
            bound = substitute(v.binding, {loop.var: value})
            if v.kind is IterKind.REDUCE and (
                scope.proves(bound > v.domain.start) or scope.proves(bound < v.domain.start)
            ):
                found.add(id(block))
    return frozenset(found)


def _cells(copies: Sequence[_Copy]) -> tuple[CellMap, ...]:
    """Memory of the body became memory of each copy, cell by cell."""
    result: list[CellMap] = []
    for copy in copies:
        for old, new in copy.memory.items():
            axes = tuple(Var(f"i{k}", extent.dtype) for k, extent in enumerate(old.shape))
            result.append(CellMap(old.data.name, new.data.name, IndexMap(axes, axes)))
    return tuple(result)


@dataclass(frozen=True, slots=True)
class _Copy:
    """Iteration `number` of a loop, on its own."""

    loop: For
    number: int
    count: int
    taken: set[str]
    past_start: frozenset[int]
    memory: dict[Buffer, Buffer] = field(default_factory=dict)

    @property
    def value(self) -> Expr:
        """The loop's variable in this iteration."""
        return _value_at(self.loop, self.number)

    def body(self, func: PrimFunc) -> Stmt:
        """The loop's body in this iteration."""
        scope = scope_around(func, self.loop)
        return tidied(substitute(self.renamed(self.loop.body, {}), {self.loop.var: self.value}), scope)

    def kept(self, numbers: Sequence[int], func: PrimFunc) -> list[int]:
        """The old numbers of the loop's stores that this copy has: inits that never run in it are gone."""
        blocks = [n for n in walk(self.loop.body) if isinstance(n, Block) and id(n) in self.past_start]
        gone = {id(store) for block in blocks if block.init is not None for store in stores_in(block.init)}
        stores = list(stores_in(func.body))
        return [n for n in numbers if id(stores[n]) not in gone]

    def name(self, old: str) -> str:
        """A name for this copy, which then is taken; one copy alone keeps its names."""
        if self.count == 1:
            return old
        return take_fresh(f"{old}_{self.number}", self.taken)

    def renamed(self, stmt: Stmt, buffers: Mapping[Buffer, Buffer]) -> Stmt:
        """The statement with its own memory and its own block names; `buffers` are those of the copy so far."""
        inner = dict(buffers)
        data = {old.data: new.data for old, new in buffers.items()}
        if isinstance(stmt, Allocate):
            inner[stmt.buffer] = self.fresh_buffer(stmt.buffer)
        elif isinstance(stmt, DeclBuffer):
            inner[stmt.buffer] = replace(
                stmt.buffer, name=self.name(stmt.buffer.name), data=data.get(stmt.buffer.data, stmt.buffer.data)
            )
        elif isinstance(stmt, Block):
            inner.update((buffer, self.fresh_buffer(buffer)) for buffer in stmt.alloc_buffers)
            inner.update((m.buffer, self.fresh_buffer(m.buffer, is_view=True)) for m in stmt.match_buffers)

        def visit(node: Node) -> Node:
            if isinstance(node, Stmt):
                return self.renamed(node, inner)
            if isinstance(node, Buffer):
                return inner.get(node, node)
            if isinstance(node, Var):
                return next((new.data for old, new in inner.items() if old.data == node), node)
            return map_children(node, visit)

        result = map_children(stmt, visit)
        if result is stmt:
            # Statements have identity: no two copies share one.
            result = replace(stmt)
        if isinstance(result, Block):
            init = None if id(stmt) in self.past_start else result.init
            return replace(result, name=self.name(result.name), init=init)
        return result

    def fresh_buffer(self, buffer: Buffer, *, is_view: bool = False) -> Buffer:
        """The copy's buffer; unless it is a view of other memory, the old memory is recorded."""
        name = self.name(buffer.name)
        new = replace(buffer, name=name, data=Var(self.name_of_data(buffer, name), buffer.data.dtype))
        if not is_view:
            self.memory[buffer] = new
        return new

    def name_of_data(self, buffer: Buffer, name: str) -> str:
        """Data keeps its name relative to its buffer, so that it needs no name of its own in the text."""
        if buffer.data.name == f"{buffer.name}_data" and f"{name}_data" not in self.taken:
            self.taken.add(f"{name}_data")
            return f"{name}_data"
        return self.name(buffer.data.name)


def _instances(old: PrimFunc, new: PrimFunc, loop: For, copies: Sequence[_Copy]) -> tuple[InstanceMap, ...]:
    """Store `s` of copy `k` computes iteration `k` of what was store `s` in the loop."""
    old_loops, new_loops = loops_of_stores(old.body), loops_of_stores(new.body)
    inside = {id(store) for store in stores_in(loop.body)}
    numbers = [n for n, store in enumerate(stores_in(old.body)) if id(store) in inside]
    first = next((n for n, store in enumerate(stores_in(old.body)) if id(store) in inside), None)
    origins: list[tuple[int, Expr]] = []
    for number, store in enumerate(stores_in(old.body)):
        if number == first:
            origins += [(n, copy.value) for copy in copies for n in copy.kept(numbers, old)]
        if id(store) not in inside:
            origins.append((number, loop.start))
    result: list[InstanceMap] = []
    for number, ((origin, value), loops) in enumerate(zip(origins, new_loops, strict=True)):
        outputs = tuple(value if each.var == loop.var and each is loop else each.var for each in old_loops[origin])
        result.append(InstanceMap(number, origin, IndexMap(tuple(each.var for each in loops), outputs)))
    return tuple(result)
