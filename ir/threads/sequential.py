"""A function with thread axes as a function without: blocks of a grid, and the threads of each phase, are iterations of
parallel loops.

That no two of them disturb one another is not assumed: races are looked for in the result as in any parallel loop. If
there are none, every order in which a device may run the threads gives what the result gives.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import HANDLE, INT64
from layoutproof.ir.expr import Expr, IntImm, Var, equal, widen
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import LAYOUT, PrimFunc
from layoutproof.ir.stmt import (
    Allocate,
    Attributes,
    AttrStmt,
    Block,
    BufferStore,
    For,
    ForKind,
    IfThenElse,
    Let,
    Seq,
    Stmt,
    seq,
)
from layoutproof.ir.threads.async_copies import AsyncCopies, without_async
from layoutproof.ir.threads.axes import AXIS, COPIES, KERNEL, Axis, Sharing, has_threads, sharing_of
from layoutproof.ir.threads.crosswise import joins_of
from layoutproof.ir.threads.kernel_text import Across, Kernel, NotSequential, in_loops, read_kernel, without_gaps
from layoutproof.ir.threads.phases import Nest, Phases, loop_over, without_barriers
from layoutproof.ir.threads.tiles import check_fragments
from layoutproof.ir.visit import (
    buffers_in,
    children,
    loads_in,
    map_children,
    names_in,
    replace_buffers,
    stores_in,
    take_fresh,
    walk,
)

WARP = 32  # threads, that have one threadIdx.y and threadIdx.z


@dataclass(frozen=True, slots=True)
class Sequential:
    """A function whose kernels are written as parallel loops. `crosswise`: how floats are joined over threads, in an
    order that is not fixed; `bounded`: whether from a finite least or greatest number, which they may leave out.
    `implied`: whether barriers were put in. `apart`: kernels whose threads meet in memory of the whole grid without a
    barrier between, each thread with shared memory of its own; there may be no race in it. `fitting`: index arithmetic
    of sizes that is no longer in the text, and taken not to overflow. `axes`: the tags of the loops over threads, by
    variable. `copies`: the tags along which each thread has a copy of a memory, as its first axes, by the name of its
    data. `under_way`: asynchronous copies, and what may find them so; there may be no race in it.
    `tuples`: the memories in which threads join several values together, in an order that is not fixed.
    `overlaps`: whether threads meet without a barrier between if two parameters overlap, which is not in the text.
    """

    func: PrimFunc
    crosswise: frozenset[BinaryOp] = frozenset()
    implied: bool = False
    apart: PrimFunc | None = None
    fitting: tuple[Expr, ...] = ()
    axes: Mapping[Var, str] = field(default_factory=dict[Var, str])
    copies: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    under_way: PrimFunc | None = None
    tuples: frozenset[Var] = frozenset()
    overlaps: bool = False
    bounded: bool = False


@dataclass(frozen=True, slots=True)
class NoSequence:
    """Why a function with thread axes is not written as parallel loops, and where."""

    reason: str
    stmt: Stmt


class Barriers(StrEnum):
    """The barriers of a kernel that has none in its text."""

    IMPLIED = "where TVM puts them"
    OF_BLOCKS = "where TVM puts them, if the kernel has blocks, which are lowered first"
    AS_WRITTEN = "none"


def sequential(
    func: PrimFunc, barriers: Barriers = Barriers.IMPLIED, *, marked: bool = False
) -> Sequential | NoSequence:
    """`func` without thread axes; the function itself if it has none. `marked`: kernels, loops over threads and copies
    of memory can be told from others.
    """
    if not has_threads(func.body):
        return Sequential(func)
    writer = _Writer(func, barriers, marked)
    try:
        body = writer.write(func.body)
    except NotSequential as problem:
        return NoSequence(problem.reason, problem.stmt)
    apart, under_way = (func.with_body(seq(*part)) if part else None for part in (writer.apart, writer.under_way))
    return Sequential(
        _without_records(func.with_body(body), writer.copies),
        frozenset(writer.crosswise),
        writer.implied,
        apart,
        axes=writer.axes,
        copies=writer.copies,
        under_way=under_way,
        tuples=frozenset(writer.tuples),
        overlaps=writer.overlaps,
        bounded=writer.bounded,
    )


def _without_records(func: PrimFunc, names: Collection[str]) -> PrimFunc:
    """The function without what is recorded of the layouts of memory that now has axes for threads."""
    records = func.attrs.get(LAYOUT)
    if not isinstance(records, Attributes) or not any(name in records for name in names):
        return func
    for name in names:
        records = records.without(name)
    return replace(func, attrs=func.attrs.with_value(LAYOUT, records) if records else func.attrs.without(LAYOUT))


class _Writer:
    def __init__(self, func: PrimFunc, barriers: Barriers, marked: bool) -> None:
        self.barriers, self.marked = barriers, marked
        self.names = names_in(func.body) | {p.name for p in func.params} | {b.name for b in func.buffers}
        self.names |= {b.data.name for b in (*func.buffers, *buffers_in(func.body))}
        # Memory of one kernel, which the text may allocate around it; not what is touched outside of kernels, too: such
        # a schedule is not finished, and its memory is like any other.
        self.outside = set(_touched_outside(func.body))
        self.around: dict[Buffer, Sharing] = {}
        # Those of it that blocks allocate.
        self.of_blocks: set[Var] = set()
        self.buffers = func.buffers
        self.parameters = frozenset(b.data for b in func.buffers if not func.noalias and len(func.buffers) > 1)
        self.crosswise: set[BinaryOp] = set()
        self.tuples: set[Var] = set()
        self.implied = self.overlaps = self.bounded = False
        self.apart: list[Stmt] = []
        self.axes: dict[Var, str] = {}
        self.copies: dict[str, tuple[str, ...]] = {}
        self.under_way: list[Stmt] = []
        self.owned: list[Buffer] = []

    def write(self, stmt: Stmt) -> Stmt:
        """A statement outside kernels, kernels inside it written out."""
        if not has_threads(stmt):
            return stmt
        if isinstance(stmt, For) and stmt.kind is ForKind.THREAD_BINDING:
            return self._kernel(stmt)
        if isinstance(stmt, Let) and stmt.var.dtype == HANDLE:
            raise NotSequential("a pointer, by which threads may meet in memory that has another name", stmt)
        if isinstance(stmt, Block):
            self.of_blocks |= {b.data for b in stmt.alloc_buffers}
            stmt = replace(stmt, alloc_buffers=tuple(b for b in stmt.alloc_buffers if not self._is_inner(b)))
            if stmt.reads is not None or stmt.writes is not None:
                stmt = replace(stmt, reads=None, writes=None)
        if isinstance(stmt, Allocate) and self._is_inner(stmt.buffer):
            return self.write(stmt.body)
        return map_children(stmt, lambda child: self.write(child) if isinstance(child, Stmt) else child)

    def _is_inner(self, buffer: Buffer) -> bool:
        sharing = sharing_of(buffer.scope, in_kernel=False)
        if sharing is Sharing.ALL or buffer.data in self.outside:
            return False
        self.around[buffer] = sharing
        return True

    def _kernel(self, root: Stmt) -> Stmt:
        kernel = read_kernel(root, self.names, {b.data: b for b in (*self.buffers, *self.around)}, self.owned)
        self.owned += kernel.memories
        kernel.syncs |= self.barriers is Barriers.AS_WRITTEN
        kernel.syncs |= self.barriers is Barriers.OF_BLOCKS and not any(isinstance(n, Block) for n in walk(root))
        used = {buffer.data for buffer in buffers_in(kernel.body)}
        memories = {buffer: sharing_of(buffer.scope, in_kernel=True) for buffer in kernel.memories}
        memories |= {buffer: sharing for buffer, sharing in self.around.items() if buffer.data in used}
        self._note_fragments(kernel, memories, root)
        for buffer, sharing in memories.items():
            if sharing in (Sharing.WARP, Sharing.ALL):
                raise NotSequential(f"{buffer.name} is in memory of scope {buffer.scope} in a kernel", root)
        self._note_crosswise(kernel)
        kernel.homes |= {b.data: kernel.virtual for b in self.around if b.data in self.of_blocks}
        memories = self._with_copies(kernel, memories, root)
        sharings = {buffer.data: sharing for buffer, sharing in memories.items()}
        axes = [axis for axis in kernel.axes.values() if axis.index == axis.var]
        if kernel.asynchronous:
            for part in AsyncCopies(kernel, sharings, implied=not kernel.syncs).parts():
                moment, mine = self._with_names(part, list(memories))
                self.under_way.append(_on_grid(_allocated(moment, mine), axes, root))
            kernel.body = without_async(kernel.body)
        phases = Phases(kernel, sharings, self.names, self.parameters)
        copies: dict[Var, tuple[str, ...]] = {}
        arranged = phases.all_phases()
        result = _if_any(phases, arranged, _place(arranged, memories, phases, copies))
        self.implied |= phases.implied
        self.overlaps |= phases.overlaps or bool(kernel.asynchronous and self.parameters)
        self.copies |= {data.name: tags for data, tags in copies.items()}
        self.axes |= {axis.var: axis.tag for axis in kernel.axes.values()}
        if phases.unordered:
            thread, mine = self._with_names(_alone(kernel, phases.unordered), list(memories))
            self.apart.append(_on_grid(phases.on_all_threads(_allocated(thread, mine)), axes, root))
        self._note_shared_by_virtual(kernel, memories, phases, root)
        own = [buffer for buffer, sharing in memories.items() if sharing is Sharing.THREAD]
        others = [buffer for buffer in memories if buffer not in own]
        loops = frozenset(axis.var for axis in phases.threads.values() if axis.index == axis.var)
        for part in phases.open.parts:
            meeting, mine = self._with_names(part, [*own, *others])
            inner, outer = mine[: len(own)], mine[len(own) :]
            meeting = _with_own(meeting, inner, loops) if loops else _allocated(meeting, inner)
            self.apart.append(_on_grid(_allocated(meeting, outer), axes, root))
        result = _on_grid(result if self.marked else in_loops(result, kernel.within), axes, root)
        return _marked(result, kernel, copies) if self.marked else result

    def _with_copies(self, kernel: Kernel, memories: dict[Buffer, Sharing], root: Stmt) -> dict[Buffer, Sharing]:
        """The memories, those of a block with a copy for each of the virtual threads that have them for themselves."""
        wider: dict[Buffer, tuple[Buffer, tuple[Axis, ...]]] = {}
        for buffer, sharing in memories.items():
            home = kernel.homes.get(buffer.data, frozenset())
            axes = tuple(axis for tag, axis in kernel.axes.items() if tag in home and axis.index == axis.var)
            if sharing is Sharing.BLOCK and axes:
                wider[buffer] = _wider(buffer, axes, root), axes
                self.copies[buffer.data.name] = tuple(axis.tag for axis in axes)
        kernel.body = _each_thread(kernel.body, wider)
        return {wider[buffer][0] if buffer in wider else buffer: sharing for buffer, sharing in memories.items()}

    def _note_shared_by_virtual(
        self, kernel: Kernel, memories: Mapping[Buffer, Sharing], phases: Phases, root: Stmt
    ) -> None:
        """Note that virtual threads may not meet in a thread's own memory that they share: here each has a copy."""
        loops = [axis for axis in phases.threads.values() if axis.index == axis.var]
        virtual = {axis.tag for axis in loops if axis.is_virtual}
        own = {b for b, sharing in memories.items() if sharing is Sharing.THREAD}
        meeting = {
            b for b in own if (phases.spread.get(b.data, frozenset()) & virtual) - kernel.homes.get(b.data, set())
        }
        if not meeting:
            return
        body = _alone(kernel, set())
        others = {*memories, *buffers_in(body)} - meeting
        part, mine = self._with_names(body, [*meeting, *others], always=True)
        part = _allocated(part, mine[len(meeting) :])
        for axis in reversed([axis for axis in loops if axis.is_virtual]):
            part = loop_over(axis, ForKind.PARALLEL, part, root)
        part = _allocated(part, mine[: len(meeting)])
        for axis in reversed([axis for axis in loops if not axis.is_virtual]):
            part = loop_over(axis, ForKind.PARALLEL, part, root)
        self.apart.append(_on_grid(part, [axis for axis in kernel.axes.values() if axis.index == axis.var], root))

    @staticmethod
    def _note_fragments(kernel: Kernel, memories: dict[Buffer, Sharing], root: Stmt) -> None:
        """Fragments that only tensor instructions touch are a thread's own: each thread of a warp has what all have."""
        fragments = [buffer for buffer in memories if buffer.data in kernel.tiles]
        lanes = kernel.axes.get("threadIdx.x")
        if fragments and (lanes is None or widen(lanes.extent, INT64) != IntImm(WARP, INT64)):
            raise NotSequential(f"tensor instructions where threadIdx.x is not a warp of {WARP} threads", root)
        if not fragments or lanes is None:
            return
        tiles = {buffer.data for buffer in fragments}
        own = {buffer.data for buffer, sharing in memories.items() if sharing is not Sharing.BLOCK} - tiles
        why = check_fragments(kernel.body, tiles, own, lanes.var)
        if why is not None:
            raise NotSequential(why, root)
        memories.update(dict.fromkeys(fragments, Sharing.THREAD))

    def _with_names(self, stmt: Stmt, buffers: list[Buffer], *, always: bool = False) -> tuple[Stmt, list[Buffer]]:
        """A part of a kernel and its memory, with other names where an earlier part has them (or `always`): no two
        parts have one memory.
        """
        if not (always or self.apart or self.under_way):
            return stmt, buffers
        renamed = {
            buffer: replace(
                buffer,
                name=take_fresh(buffer.name, self.names),
                data=Var(take_fresh(buffer.data.name, self.names), buffer.data.dtype),
            )
            for buffer in buffers
        }
        return replace_buffers(stmt, renamed), [renamed[buffer] for buffer in buffers]

    def _note_crosswise(self, kernel: Kernel) -> None:
        if any(buffer.dtype.is_float for buffer in buffers_in(kernel.body) if buffer.data in kernel.tiles):
            self.crosswise |= kernel.joins
        for node in walk(kernel.body):
            if isinstance(node, Across):
                joins = joins_of(node, {kernel.axes[tag].var for tag in node.axes})
                self.crosswise |= joins.floats
                self.bounded |= joins.bounded
                self.tuples |= joins.tuples
                written = {store.buffer.data for store in stores_in(node)} & self.parameters
                self.overlaps |= bool(written) and any(load.buffer.data in self.parameters for load in loads_in(node))


def _if_any(phases: Phases, arranged: Stmt, placed: Stmt) -> Stmt:
    """A kernel, under the condition that it has threads where a phase is in no loop over them."""
    along = [set(nest.axes) for nest in walk(arranged) if isinstance(nest, Nest)]
    for tag, axis in phases.threads.items():
        none, extent = IntImm(0, axis.var.dtype), axis.extent
        certain = isinstance(extent, IntImm) and extent.value > 0
        if not certain and not all(tag in axes for axes in along):
            placed = IfThenElse(none < extent, placed, span=placed.span)
    return placed


def _marked(stmt: Stmt, kernel: Kernel, copies: Mapping[Var, tuple[str, ...]]) -> Stmt:
    """A kernel as parallel loops, with marks at its beginning, at its loops over threads and at copies of memory."""
    tags = {axis.var: tag for tag, axis in kernel.axes.items()}

    def visit(node: Node) -> Node:
        rebuilt = map_children(node, visit)
        if isinstance(rebuilt, For) and rebuilt.kind is ForKind.PARALLEL and rebuilt.var in tags:
            return replace(rebuilt, annotations=rebuilt.annotations.with_value(AXIS, tags[rebuilt.var]))
        if isinstance(rebuilt, Allocate) and rebuilt.buffer.data in copies:
            return replace(rebuilt, annotations=rebuilt.annotations.with_value(COPIES, copies[rebuilt.buffer.data]))
        return rebuilt

    body = visit(stmt)
    assert isinstance(body, Stmt)
    return AttrStmt(IntImm(0), KERNEL, IntImm(0), body, span=stmt.span)


def _on_grid(stmt: Stmt, axes: Sequence[Axis], root: Stmt) -> Stmt:
    for axis in reversed([axis for axis in axes if axis.is_block]):
        stmt = loop_over(axis, ForKind.PARALLEL, stmt, root)
    return stmt


def _with_own(stmt: Stmt, buffers: Sequence[Buffer], loops: frozenset[Var]) -> Stmt:
    """A statement whose loops over threads, which have the variables `loops`, have the memory of each thread inside the
    innermost of them.
    """
    if isinstance(stmt, For) and stmt.var in loops:
        inner = stmt.body
        if isinstance(inner, For) and inner.var in loops:
            return replace(stmt, body=_with_own(inner, buffers, loops))
        return replace(stmt, body=_allocated(inner, buffers))

    def visit(node: Node) -> Node:
        return _with_own(node, buffers, loops) if isinstance(node, Stmt) else node

    return map_children(stmt, visit)


def _alone(kernel: Kernel, unordered: set[Var]) -> Stmt:
    """What one thread does, from the first statement to the last; reductions over threads are those of the first."""

    def visit(node: Node) -> Node:
        if not isinstance(node, Across):
            return map_children(node, visit)
        written = {store.buffer.data for store in stores_in(node)}
        if any(load.buffer.data in unordered - written for load in loads_in(node)):
            raise NotSequential("a reduction over threads reads what the kernel writes elsewhere", node)
        body: Stmt = node.body
        for axis in map(kernel.axes.__getitem__, node.axes):
            body = IfThenElse(equal(axis.var, IntImm(0, axis.var.dtype)), body, span=node.span)
        return body

    return without_barriers(visit(kernel.body))


def _touched_outside(stmt: Stmt) -> Iterator[Var]:
    """The memories that statements outside of kernels touch."""
    stack: list[Node] = [stmt]
    while stack:
        node = stack.pop()
        if isinstance(node, For) and node.kind is ForKind.THREAD_BINDING:
            continue
        if isinstance(node, BufferLoad | BufferStore):
            yield node.buffer.data
        stack += children(node)


def _place(stmt: Stmt, memories: Mapping[Buffer, Sharing], phases: Phases, copies: dict[Var, tuple[str, ...]]) -> Stmt:
    """The phases with their memory: what a thread uses in one phase only inside it, other memory around all phases,
    with a place for each thread that may have a value of its own; `copies` are told of it.
    """
    uses: dict[Var, list[Nest]] = {}
    for nest in walk(stmt):
        if isinstance(nest, Nest):
            for data in {buffer.data for buffer in buffers_in(nest.body)}:
                uses.setdefault(data, []).append(nest)
    inner: dict[Nest, list[Buffer]] = {}
    outer: list[Buffer] = []
    wider: dict[Buffer, tuple[Buffer, tuple[Axis, ...]]] = {}
    for buffer, sharing in memories.items():
        nests = uses.get(buffer.data, [])
        if sharing is Sharing.THREAD and len(nests) == 1 and not nests[0].repeated:
            inner.setdefault(nests[0], []).append(buffer)
            continue
        tags = phases.spread.get(buffer.data, frozenset()) if sharing is Sharing.THREAD else frozenset()
        axes = tuple(axis for tag, axis in phases.threads.items() if tag in tags)
        if axes:
            wider[buffer] = _wider(buffer, axes, stmt), axes
            copies[buffer.data] = tuple(axis.tag for axis in axes)
        outer.append(wider[buffer][0] if axes else buffer)

    def filled(node: Node) -> Node:
        if isinstance(node, Nest):
            return _allocated(_each_thread(node.body, wider), inner.get(node, []))
        if isinstance(node, Seq):
            return seq(*(statement for child in node.body if isinstance(statement := filled(child), Stmt)))
        return map_children(node, filled)

    result = filled(stmt)
    assert isinstance(result, Stmt)
    return _allocated(result, outer)


def _allocated(stmt: Stmt, buffers: Sequence[Buffer]) -> Stmt:
    for buffer in reversed(buffers):
        stmt = Allocate(buffer, stmt, span=stmt.span)
    return stmt


def _wider(buffer: Buffer, axes: Sequence[Axis], stmt: Stmt) -> Buffer:
    """The buffer with a copy for each thread along the axes."""
    if buffer.axis_separators or buffer.elem_offset != IntImm(0):
        raise NotSequential(f"{buffer.name}, of which each thread has a copy, has an offset or axis groups", stmt)
    if without_gaps(buffer).strides:
        raise NotSequential(f"{buffer.name}, of which each thread has a copy, has elements that may be one cell", stmt)
    return replace(buffer, shape=(*(axis.extent for axis in axes), *buffer.shape), strides=())


def _each_thread(stmt: Stmt, wider: Mapping[Buffer, tuple[Buffer, tuple[Axis, ...]]]) -> Stmt:
    """Accesses to memory of which each thread has a copy, in that copy."""

    def visit(node: Node) -> Node:
        rebuilt = map_children(node, visit)
        if isinstance(rebuilt, BufferLoad | BufferStore):
            found = wider.get(rebuilt.buffer)
            if found is not None:
                indices: tuple[Expr, ...] = (*(axis.var for axis in found[1]), *rebuilt.indices)
                return replace(rebuilt, buffer=found[0], indices=indices)
        return rebuilt

    result = visit(stmt)
    assert isinstance(result, Stmt)
    return result
