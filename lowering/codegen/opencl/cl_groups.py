"""Kernels with thread axes as work groups: which loops are groups and work items, which memory a group shares, and
where its work items wait for one another.

A kernel comes as parallel loops (`ir.threads`): loops over blocks around phases, each phase a nest of loops over
threads, or none where it is the same for all. What lies between is the same for all threads of a block. A work item
waits before a phase that touches what others have touched since the last barrier, one of them writing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Broadcast, Cast, Expr, IntImm, Ramp, Var, binary
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.stmt import Allocate, AttrStmt, BufferStore, DeclBuffer, For, IfThenElse, Let, Seq, Stmt
from layoutproof.ir.threads.axes import AXIS, COPIES
from layoutproof.ir.visit import descend, free_variables, walk
from layoutproof.lowering.arith.affine import Affine, affine_of, expression_of
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.codegen.c_expr import Expressions
from layoutproof.lowering.codegen.c_stmt import product_of
from layoutproof.lowering.codegen.calling_convention import MemoryMap
from layoutproof.lowering.codegen.opencl.cl_plan import Usage, WorkItems, usage_of

_AXES = "xyz"
_BLOCK, _THREAD = "blockIdx", "threadIdx"
_LOCAL, _GLOBAL = "CLK_LOCAL_MEM_FENCE", "CLK_GLOBAL_MEM_FENCE"


def tag_of(stmt: Stmt) -> str | None:
    """The thread axis that a loop stands for."""
    tag = stmt.annotations.get(AXIS) if isinstance(stmt, For) else None
    return tag if isinstance(tag, str) else None


def _is_block(tag: str) -> bool:
    return tag.startswith(_BLOCK)


def thread_loops(stmt: Stmt) -> dict[str, For]:
    """The loops over threads in a statement by their axes, the first of each."""
    found: dict[str, For] = {}
    for node in walk(stmt):
        tag = tag_of(node) if isinstance(node, For) else None
        if tag is not None and not _is_block(tag):
            assert isinstance(node, For)
            found.setdefault(tag, node)
    return found


def is_phase(stmt: Stmt) -> bool:
    """Whether a statement between loops over blocks is a phase: a loop over threads, or in no such loop and without
    one.
    """
    tag = tag_of(stmt)
    if tag is not None:
        return not _is_block(tag)
    return not any(tag_of(node) is not None for node in walk(stmt) if isinstance(node, For))


def _phases(stmt: Stmt) -> Iterator[Stmt]:
    if is_phase(stmt):
        yield stmt
        return
    for child in _inner(stmt):
        yield from _phases(child)


def _inner(stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements in one that is the same for all threads."""
    match stmt:
        case Seq(body=body):
            return body
        case For(body=inner) | Let(body=inner) | Allocate(body=inner) | DeclBuffer(body=inner) | AttrStmt(body=inner):
            return (inner,)
        case IfThenElse(then=then, otherwise=otherwise):
            return (then,) if otherwise is None else (then, otherwise)
        case _:
            raise error(codes.UNSUPPORTED, f"the OpenCL target has no {type(stmt).__name__} around threads", stmt.span)


@dataclass(frozen=True, slots=True)
class Group:
    """A kernel of work groups: loops over blocks and over threads by axis, its text, the memory that a group shares,
    and the fences of the barriers, by the identity of the statement behind each.
    """

    blocks: Mapping[str, For]
    threads: Mapping[str, For]
    body: Stmt
    shared: tuple[Buffer, ...] = ()
    barriers: Mapping[int, str] = field(default_factory=dict[int, str])

    @property
    def loops(self) -> tuple[For, ...]:
        """The loops over blocks and over threads."""
        return (*self.blocks.values(), *self.threads.values())

    @property
    def sized_by_host(self) -> tuple[Buffer, ...]:
        """The shared memory whose extents are not constant."""
        return tuple(buffer for buffer in self.shared if product_of(buffer.shape) is None)

    @property
    def waits_for_global(self) -> bool:
        """Whether work items wait for what others of their group do to parameters or temporaries."""
        return any(_GLOBAL in fence for fence in self.barriers.values())

    def left_out(self, phase: Stmt) -> list[str]:
        """The axes of work items along which only the first runs a phase."""
        inside = thread_loops(phase)
        return [tag for tag in self.threads if tag not in inside]


def make_group(kernel: Stmt, memory: MemoryMap, hosts: frozenset[str]) -> Group:
    """The work groups of a kernel. `hosts` are the names whose values the host knows.

    Raises LayoutproofError (LP403), with its place, for an axis that OpenCL has not, a number of threads that the host
    does not know, and shared memory whose size it does not know.
    """
    blocks: dict[str, For] = {}
    for node in walk(kernel):
        tag = tag_of(node) if isinstance(node, For) else None
        if tag is not None and _is_block(tag):
            assert isinstance(node, For)
            blocks[tag] = node
    threads = {tag: loop for tag, loop in thread_loops(kernel).items() if tag.startswith(_THREAD)}
    for tag, loop in (*blocks.items(), *threads.items()):
        _check_axis(tag, loop, hosts)
    for phase in _phases(kernel):
        _check_nest(phase)
    body = kernel
    shared: list[Buffer] = []
    for stmt, tags in _memories(kernel):
        narrow = _own(stmt.buffer, tags, kernel, memory)
        if narrow is not None:
            body = _narrowed(body, stmt.buffer, narrow)
            continue
        _check_size(stmt.buffer, hosts)
        shared.append(stmt.buffer)
    names = frozenset(buffer.data.name for buffer in shared)
    placing = _Placing(memory, names, frozenset(s.buffer.data.name for s, _ in _memories(kernel)) - names)
    placing.place(body, _NOTHING)
    return Group(blocks, threads, body, tuple(shared), placing.barriers)


def _check_axis(tag: str, loop: For, hosts: frozenset[str]) -> None:
    _, _, axis = tag.partition(".")
    if axis not in tuple(_AXES):
        raise error(codes.UNSUPPORTED, f"the OpenCL target has no axis {tag}", loop.span)
    unknown = _unknown_to_host(loop.extent, hosts)
    if unknown is not None:
        message = f"the OpenCL target takes axes whose length the host knows; that of {tag} depends on {unknown}"
        raise error(codes.UNSUPPORTED, message, loop.span)


def _check_size(buffer: Buffer, hosts: frozenset[str]) -> None:
    for extent in buffer.shape:
        unknown = _unknown_to_host(extent, hosts)
        if unknown is not None:
            message = (
                f"the OpenCL target takes shared memory whose size the host knows; that of {buffer.name} depends on "
                f"{unknown}"
            )
            raise error(codes.UNSUPPORTED, message, buffer.span)


def _unknown_to_host(extent: Expr, hosts: frozenset[str]) -> str | None:
    """What an extent depends on that the host does not know before a launch."""
    if any(isinstance(node, BufferLoad) for node in walk(extent)):
        return "memory"
    return next((v.name for v in free_variables(extent) if v.name not in hosts), None)


def _check_nest(phase: Stmt) -> None:
    """The loops over threads of a phase stand one inside the other, without anything between."""
    inside = len(thread_loops(phase))
    current, depth = phase, 0
    while isinstance(current, For) and tag_of(current) is not None:
        current, depth = current.body, depth + 1
    if depth != inside:
        raise error(codes.UNSUPPORTED, "the OpenCL target takes threads in loops around whole statements", phase.span)


# --- memory


def _memories(kernel: Stmt) -> Iterator[tuple[Allocate, tuple[str, ...]]]:
    """The memory around phases, with the axes along which threads have copies of it."""
    if is_phase(kernel):
        return
    if isinstance(kernel, Allocate):
        tags = kernel.annotations.get(COPIES)
        yield kernel, tuple(str(tag) for tag in tags) if isinstance(tags, tuple) else ()
    for child in _inner(kernel):
        yield from _memories(child)


@dataclass(frozen=True, slots=True)
class _Narrow:
    """The memory of one work item in place of one copy for each, and what to take from an index."""

    buffer: Buffer
    offset: Affine

    def index(self, wide: Expr) -> Expr:
        """The place of an element of all copies in the work item's own."""
        if isinstance(wide, Ramp):
            return replace(wide, base=self.index(wide.base))
        if wide.dtype.lanes > 1:
            taken = expression_of(self.offset, wide.dtype.element)
            return binary(BinaryOp.SUB, wide, Broadcast(taken, wide.dtype.lanes))
        found = affine_of(wide)
        terms = (Affine({_unwidened(term): step}) for term, step in found.terms.items())
        return expression_of(sum(terms, Affine({}, found.constant)) - self.offset, wide.dtype)


def _unwidened(term: Expr) -> Expr:
    """A variable in place of its cast to a wider type."""
    if isinstance(term, Cast) and isinstance(term.value, Var) and term.dtype.bits >= term.value.dtype.bits:
        return term.value
    return term


def _own(buffer: Buffer, tags: tuple[str, ...], kernel: Stmt, memory: MemoryMap) -> _Narrow | None:
    """The memory as each work item has it, where only the thread that a copy is of touches it; None where the group has
    to share it.
    """
    if buffer.scope.startswith("shared") or buffer.rank != 1 or not isinstance(buffer.shape[0], IntImm):
        return None
    name = buffer.data.name
    for phase in _phases(kernel):
        usage = usage_of(phase, memory)
        if name in usage.read | usage.written and set(thread_loops(phase)) != set(tags):
            return None
    if _is_read_between(kernel, name, memory):
        return None
    loops = thread_loops(kernel)
    extents = [loops[tag].extent for tag in tags]
    sizes = [extent.value for extent in extents if isinstance(extent, IntImm)]
    if len(sizes) != len(extents) or prod(sizes) == 0:
        return None
    inner = buffer.shape[0].value // prod(sizes)
    offset, kept = Affine({}), inner
    for position in reversed(range(len(tags))):
        step = inner * prod(sizes[position + 1 :])
        index = Affine({loops[tags[position]].var: step})
        if not tags[position].startswith(_THREAD):  # one work item runs all of these
            index, kept = index - Affine({loops[tags[position]].var: kept}), kept * sizes[position]
        offset = offset + index
    return _Narrow(replace(buffer, shape=(IntImm(kept, buffer.shape[0].dtype),)), offset)


def _is_read_between(stmt: Stmt, name: str, memory: MemoryMap) -> bool:
    """Whether something that is the same for all threads reads a memory."""
    if is_phase(stmt):
        return False
    inner = set(map(id, _inner(stmt)))
    parts = [node for node in _children(stmt) if id(node) not in inner]
    loads = (node for part in parts for node in walk(part) if isinstance(node, BufferLoad))
    if any(memory.at(load.buffer).buffer.data.name == name for load in loads):
        return True
    return any(_is_read_between(child, name, memory) for child in _inner(stmt))


def _children(stmt: Stmt) -> list[Node]:
    match stmt:
        case For(start=start, extent=extent):
            return [start, extent]
        case IfThenElse(condition=condition):
            return [condition]
        case Let(value=value):
            return [value]
        case _:
            return []


def _narrowed(stmt: Stmt, wide: Buffer, narrow: _Narrow) -> Stmt:
    """The statement with a work item's own memory in place of that of all."""

    def visit(node: Node) -> Node | Steps[Node, Node]:
        return node if isinstance(node, Buffer) else descend(node, visit, narrowed)

    def narrowed(rebuilt: Node) -> Node:
        if isinstance(rebuilt, Allocate) and rebuilt.buffer == wide:
            return replace(rebuilt, buffer=narrow.buffer)
        if isinstance(rebuilt, BufferLoad | BufferStore) and rebuilt.buffer == wide:
            return replace(rebuilt, buffer=narrow.buffer, indices=(narrow.index(rebuilt.indices[0]),))
        return rebuilt

    result = trampoline(visit, stmt)
    assert isinstance(result, Stmt)
    return result


# --- barriers

_NOTHING = Usage(frozenset(), frozenset())


def _union(a: Usage, b: Usage) -> Usage:
    return Usage(a.read | b.read, a.written | b.written)


@dataclass(slots=True)
class _Placing:
    """Follows a kernel with what was touched since the last barrier."""

    memory: MemoryMap
    shared: frozenset[str]
    private: frozenset[str]
    barriers: dict[int, str] = field(default_factory=dict[int, str])

    def place(self, stmt: Stmt, open_: Usage) -> Usage:
        """What is open after a statement; notes the barriers in it."""
        if is_phase(stmt):
            return self._phase(stmt, open_)
        match stmt:
            case For() if tag_of(stmt) is None:
                return self._loop(stmt, open_)
            case IfThenElse(then=then, otherwise=otherwise):
                after = self.place(then, open_)
                return _union(after, self.place(otherwise, open_) if otherwise is not None else open_)
            case _:
                for child in _inner(stmt):
                    open_ = self.place(child, open_)
                return open_

    def _loop(self, loop: For, open_: Usage) -> Usage:
        """Each iteration begins with what was open before the loop, or with what the one before it leaves."""
        before = open_
        while True:
            after = self.place(loop.body, before)
            if _union(before, after) == before:
                return _union(open_, after)
            before = _union(before, after)

    def _phase(self, phase: Stmt, open_: Usage) -> Usage:
        inside = {node.buffer.data.name for node in walk(phase) if isinstance(node, Allocate)}
        usage = usage_of(phase, self.memory)
        mine = Usage(usage.read - inside - self.private, usage.written - inside - self.private)
        meeting = (mine.written & (open_.read | open_.written)) | (open_.written & mine.read)
        kept = open_
        fences = []
        if meeting & self.shared:
            fences.append(_LOCAL)
            kept = Usage(kept.read - self.shared, kept.written - self.shared)
        if meeting - self.shared:
            fences.append(_GLOBAL)
            kept = Usage(kept.read & self.shared, kept.written & self.shared)
        if fences:
            known = self.barriers.get(id(phase), "")
            self.barriers[id(phase)] = " | ".join(f for f in (_LOCAL, _GLOBAL) if f in fences or f in known)
        return _union(kept, mine)


# --- work items


@dataclass(frozen=True, slots=True)
class GroupItems(WorkItems):
    """The work items of a kernel with thread axes, which come in groups."""

    group: Group = field(kw_only=True)

    def counts(self, stmt: For) -> bool:
        """Whether the loop is over blocks, or over threads that are work items."""
        tag = tag_of(stmt)
        return tag is not None and (tag in self.group.blocks or tag in self.group.threads)

    @property
    def global_size(self) -> tuple[Expr, ...]:
        """How many work items there are in each dimension."""
        return tuple(_product(*(loop.extent for loop in self._along(axis))) for axis in self._used())

    @property
    def local_size(self) -> tuple[Expr, ...]:
        """The size of a group in each dimension."""
        threads = self.group.threads
        one = IntImm(1)
        return tuple(threads[t].extent if (t := f"{_THREAD}.{axis}") in threads else one for axis in self._used())

    def _along(self, axis: str) -> list[For]:
        found = (self.group.blocks.get(f"{_BLOCK}.{axis}"), self.group.threads.get(f"{_THREAD}.{axis}"))
        return [loop for loop in found if loop is not None]

    def _used(self) -> str:
        last = max((k for k, axis in enumerate(_AXES) if self._along(axis)), default=0)
        return _AXES[: last + 1]

    def position(self, stmt: For, expressions: Expressions) -> str:
        """A work item's place in a loop, from 0."""
        return f"({expressions.integers.index_type.value}){place_on(str(tag_of(stmt)))}"


def place_on(tag: str) -> str:
    """The call that gives a work item's place on an axis."""
    role, _, axis = tag.partition(".")
    return f"{'get_group_id' if role == _BLOCK else 'get_local_id'}({_AXES.index(axis)})"


def _product(*factors: Expr) -> Expr:
    found: Expr = IntImm(1)
    for factor in factors:
        found = factor if found == IntImm(1) else binary(BinaryOp.MUL, found, factor)
    return found
