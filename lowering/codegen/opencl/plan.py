"""Where a function is cut into kernels, and which of its loops become work items.

Each statement at the top is a kernel of its own: a launch ends before the next begins, so what one wrote the next may read. The
loops that enclose a statement and run in parallel count its work items; a statement without is one work item, and several of those
in a row are one kernel. Names and conditions around statements stand in each kernel that needs them, unless they read memory that the
function writes: what they say then belongs to one moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import Expr, Not, Var
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import (
    Allocate,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    For,
    ForKind,
    IfThenElse,
    Let,
    Seq,
    Stmt,
    seq,
)
from layoutproof.ir.visit import free_variables, loads_in, walk
from layoutproof.lowering.codegen.opencl.source import Image
from layoutproof.lowering.codegen.storage import MemoryMap

_GRID = (ForKind.PARALLEL, ForKind.THREAD_BINDING)


@dataclass(frozen=True, slots=True)
class Piece:
    """One kernel: its statement, the loops of it that are work items, outermost first, and the statements around it."""

    unit: Stmt
    grid: tuple[For, ...]
    around: tuple[Stmt, ...]

    @property
    def stmt(self) -> Stmt:
        """The statement with what stands around it, as far as it is needed."""
        found = self.unit
        for outer in reversed(self.around):
            found = _wrapped(outer, found)
        return found


@dataclass(frozen=True, slots=True)
class Usage:
    """What a statement does with memory, by the data variables that declare it."""

    read: frozenset[str]
    written: frozenset[str]


def usage_of(stmt: Stmt, memory: MemoryMap) -> Usage:
    """What a statement reads and writes."""
    read, written = set[str](), set[str]()
    for node in walk(stmt):
        if isinstance(node, BufferLoad | BufferStore):
            piece = memory.of(node.buffer)
            assert piece is not None
            (written if isinstance(node, BufferStore) else read).add(piece.buffer.data.name)
    return Usage(frozenset(read), frozenset(written))


@dataclass(frozen=True, slots=True)
class Plan:
    """The kernels in order, and the allocations that outlive one."""

    pieces: tuple[Piece, ...]
    allocations: tuple[Allocate, ...]


@dataclass(frozen=True, slots=True)
class _Context:
    """What cutting needs to know: the memory, whether parameters may overlap, the names whose values the host knows."""

    memory: MemoryMap
    noalias: bool
    hosts: frozenset[str]

    def lasts(self, expr: Expr) -> bool:
        """Whether an expression has one value for the whole call: it reads no memory that the function writes."""
        overlapping = not self.noalias and any(piece.is_parameter and piece.written for piece in self.memory.by_data.values())
        for load in loads_in(expr):
            piece = self.memory.of(load.buffer)
            assert piece is not None
            if piece.written or (overlapping and piece.is_parameter):
                return False
        return True


def make_plan(func: PrimFunc, memory: MemoryMap, images: Mapping[str, Image], hosts: frozenset[str]) -> Plan:
    """The kernels of a function. `hosts` are the names whose values the host knows: parameters and the symbols of shapes."""
    allocations: list[Allocate] = []
    pieces: list[Piece] = []
    for piece in _pieces(func.body, (), _Context(memory, func.noalias, hosts), allocations.append):
        before = pieces[-1] if pieces else None
        if before is not None and _joins(before, piece, memory, images):
            pieces[-1] = Piece(seq(before.unit, piece.unit), (), piece.around)
        else:
            pieces.append(piece)
    return Plan(tuple(pieces), tuple(allocations))


def _pieces(stmt: Stmt, around: tuple[Stmt, ...], context: _Context, allocate: Callable[[Allocate], None]) -> Iterator[Piece]:
    match stmt:
        case Seq(body=parts):
            for part in parts:
                yield from _pieces(part, around, context, allocate)
        case Allocate(body=body):
            allocate(stmt)
            yield from _pieces(body, around, context, allocate)
        case DeclBuffer(body=body) | AttrStmt(body=body):
            yield from _pieces(body, (*around, stmt), context, allocate)
        case Let(value=value, body=body) if context.lasts(value) and _has_grid(body):
            yield from _pieces(body, (*around, stmt), context, allocate)
        case IfThenElse(condition=condition, then=then, otherwise=otherwise) if context.lasts(condition) and _has_grid(stmt):
            yield from _pieces(then, (*around, replace(stmt, otherwise=None)), context, allocate)
            if otherwise is not None:
                unless = IfThenElse(Not(condition), otherwise)
                yield from _pieces(otherwise, (*around, unless), context, allocate)
        case _:
            if any(isinstance(node, BufferStore) for node in walk(stmt)):
                yield Piece(stmt, _grid_of(stmt, context), around)


def _has_grid(stmt: Stmt) -> bool:
    return any(isinstance(node, For) and node.kind in _GRID for node in walk(stmt))


def _grid_of(stmt: Stmt, context: _Context) -> tuple[For, ...]:
    """The loops of a statement that become work items: parallel ones around all of it, of extents that the host knows.

    What lies between them may not read memory that the body may write. Where loops are bound to threads, those alone count.
    """
    found: list[For] = []
    current: Stmt | None = stmt
    while current is not None:
        match current:
            case For(kind=kind, start=start, extent=extent, body=body) if kind in _GRID and context.lasts(start):
                if any(v.name not in context.hosts for v in free_variables(extent)) or any(True for _ in loads_in(extent)):
                    break
                found.append(current)
                current = body
            case DeclBuffer(body=body) | AttrStmt(body=body):
                current = body
            case Let(value=value, body=body) if context.lasts(value):
                current = body
            case IfThenElse(condition=condition, then=then, otherwise=None) if context.lasts(condition):
                current = then
            case _:
                break
    threads = tuple(loop for loop in found if loop.kind is ForKind.THREAD_BINDING)
    return threads if threads else tuple(found)


def _joins(before: Piece, after: Piece, memory: MemoryMap, images: Mapping[str, Image]) -> bool:
    """Whether two statements may be one kernel: single work items both, and no image that one writes and the other reads."""
    if before.grid or after.grid or before.around != after.around:
        return False
    first, second = usage_of(before.unit, memory), usage_of(after.unit, memory)
    crossing = (first.written & second.read) | (first.read & second.written)
    return not any(name in images for name in crossing)


def _wrapped(outer: Stmt, inner: Stmt) -> Stmt:
    """`inner` in what stands around it, where it has a use for that."""
    match outer:
        case Let(var=var, value=value):
            return Let(var, value, inner) if _uses(inner, var) else inner
        case DeclBuffer(buffer=buffer):
            used = any(isinstance(node, BufferLoad | BufferStore) and node.buffer == buffer for node in walk(inner))
            return DeclBuffer(buffer, inner) if used else inner
        case IfThenElse(condition=condition):
            return IfThenElse(condition, inner)
        case _:
            return inner


def _uses(stmt: Stmt, var: Var) -> bool:
    if any(node == var for node in walk(stmt)):
        return True
    return any(isinstance(node, BufferLoad | BufferStore) and node.buffer.data == var for node in walk(stmt))
