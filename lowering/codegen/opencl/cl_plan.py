"""How a function is cut into kernels, which loops become work items, and in which dimension.

Each top-level statement is a kernel: a launch ends before the next begins, so the next may read what it wrote. Names
and conditions around statements are in each kernel that needs them, unless they read memory that the function writes.
The innermost loop is dimension 0; of more than three loops the outer ones share dimension 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import Expr, IntImm, Not, Var, binary
from layoutproof.ir.operators import BinaryOp
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
from layoutproof.ir.threads.axes import KERNEL
from layoutproof.ir.visit import free_variables, loads_in, walk
from layoutproof.lowering.codegen.c_expr import Expressions
from layoutproof.lowering.codegen.c_types import Binding, Fragment
from layoutproof.lowering.codegen.calling_convention import MemoryMap
from layoutproof.lowering.codegen.opencl.cl_helpers import Image

DIMENSIONS = 3


@dataclass(frozen=True, slots=True)
class Piece:
    """One kernel: its statement, the loops of it that are work items, outermost first, and the statements around it.
    `has_threads`: it was a kernel with thread axes.
    """

    unit: Stmt
    grid: tuple[For, ...]
    around: tuple[Stmt, ...]
    has_threads: bool = False

    @property
    def stmt(self) -> Stmt:
        """The statement with the enclosing statements that it needs."""
        return self.around_of(self.unit)

    def around_of(self, stmt: Stmt) -> Stmt:
        """A statement with the enclosing statements that it needs."""
        for outer in reversed(self.around):
            stmt = _wrapped(outer, stmt)
        return stmt


@dataclass(frozen=True, slots=True)
class Usage:
    """How a statement uses memory, by the data variables that declare it."""

    read: frozenset[str]
    written: frozenset[str]


def usage_of(stmt: Stmt, memory: MemoryMap) -> Usage:
    """What a statement reads and writes."""
    read, written = set[str](), set[str]()
    for node in walk(stmt):
        if isinstance(node, BufferLoad | BufferStore):
            piece = memory.at(node.buffer)
            (written if isinstance(node, BufferStore) else read).add(piece.buffer.data.name)
    return Usage(frozenset(read), frozenset(written))


@dataclass(frozen=True, slots=True)
class Plan:
    """The kernels in order, and the allocations that outlive one."""

    pieces: tuple[Piece, ...]
    allocations: tuple[Allocate, ...]


@dataclass(frozen=True, slots=True)
class _Context:
    """The memory, whether parameters may overlap, and the names whose values the host knows."""

    memory: MemoryMap
    noalias: bool
    hosts: frozenset[str]

    def lasts(self, expr: Expr) -> bool:
        """Whether an expression has one value for the whole call: it reads no memory that the function writes."""
        written = any(piece.is_parameter and piece.written for piece in self.memory.by_data.values())
        overlapping = written and not self.noalias
        for load in loads_in(expr):
            piece = self.memory.at(load.buffer)
            if piece.written or (overlapping and piece.is_parameter):
                return False
        return True


def make_plan(func: PrimFunc, memory: MemoryMap, images: Mapping[str, Image], hosts: frozenset[str]) -> Plan:
    """The kernels of a function. `hosts` are the names whose values the host knows: parameters and the symbols of
    shapes.
    """
    allocations: list[Allocate] = []
    pieces: list[Piece] = []
    for piece in _pieces(func.body, (), _Context(memory, func.noalias, hosts), allocations.append):
        before = pieces[-1] if pieces else None
        if before is not None and _joins(before, piece, memory, images):
            pieces[-1] = Piece(seq(before.unit, piece.unit), (), piece.around)
        else:
            pieces.append(piece)
    return Plan(tuple(pieces), tuple(allocations))


def _pieces(
    stmt: Stmt, around: tuple[Stmt, ...], context: _Context, allocate: Callable[[Allocate], None]
) -> Iterator[Piece]:
    match stmt:
        case Seq(body=parts):
            for part in parts:
                yield from _pieces(part, around, context, allocate)
        case Allocate(body=body):
            allocate(stmt)
            yield from _pieces(body, around, context, allocate)
        case AttrStmt(key=key, body=body) if key == KERNEL:
            yield Piece(body, (), around, has_threads=True)
        case DeclBuffer(body=body) | AttrStmt(body=body):
            yield from _pieces(body, (*around, stmt), context, allocate)
        case Let(value=value, body=body) if context.lasts(value) and _has_grid(body):
            yield from _pieces(body, (*around, stmt), context, allocate)
        case IfThenElse(condition=condition, then=then, otherwise=otherwise) if context.lasts(condition) and _has_grid(
            stmt
        ):
            yield from _pieces(then, (*around, replace(stmt, otherwise=None)), context, allocate)
            if otherwise is not None:
                unless = IfThenElse(Not(condition), otherwise)
                yield from _pieces(otherwise, (*around, unless), context, allocate)
        case _:
            if any(isinstance(node, BufferStore) for node in walk(stmt)):
                yield Piece(stmt, _grid_of(stmt, context), around)


def _has_grid(stmt: Stmt) -> bool:
    return any(isinstance(node, For) and node.kind is ForKind.PARALLEL for node in walk(stmt))


def _grid_of(stmt: Stmt, context: _Context) -> tuple[For, ...]:
    """The loops of a statement that become work items: parallel ones around all of it, with extents that the host
    knows.

    Statements between them may not read memory that the body may write.
    """
    found: list[For] = []
    current: Stmt | None = stmt
    while current is not None:
        match current:
            case For(kind=kind, start=start, extent=extent, body=body) if kind is ForKind.PARALLEL and context.lasts(
                start
            ):
                if any(v.name not in context.hosts for v in free_variables(extent)):
                    break
                if any(True for _ in loads_in(extent)):
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
    return tuple(found)


def _joins(before: Piece, after: Piece, memory: MemoryMap, images: Mapping[str, Image]) -> bool:
    """Whether two statements may be one kernel: both single work items, and no image that one writes and the other
    reads.
    """
    if before.grid or after.grid or before.around != after.around or before.has_threads or after.has_threads:
        return False
    first, second = usage_of(before.unit, memory), usage_of(after.unit, memory)
    crossing = (first.written & second.read) | (first.read & second.written)
    return not any(name in images for name in crossing)


def _wrapped(outer: Stmt, inner: Stmt) -> Stmt:
    """`inner` in its enclosing statements, those that it uses."""
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


@dataclass(frozen=True, slots=True)
class WorkItems:
    """The work items of one kernel. `grid` are the loops, outermost first; `hosts` the names that the host knows the
    values of.
    """

    grid: tuple[For, ...] = ()
    hosts: frozenset[str] = frozenset()

    def counts(self, stmt: For) -> bool:
        """Whether the loop is one of those that became work items."""
        return any(loop is stmt for loop in self.grid)

    @property
    def global_size(self) -> tuple[Expr, ...]:
        """How many work items there are in each dimension; one where there are no loops."""
        inner = self.grid[::-1]
        sizes = [loop.extent for loop in inner[: DIMENSIONS - 1]]
        outer = self.grid[: -(DIMENSIONS - 1)]
        if outer:
            sizes.append(_product([loop.extent for loop in outer]))
        return tuple(sizes) if sizes else (IntImm(1),)

    @property
    def local_size(self) -> tuple[Expr, ...] | None:
        """The size of a group in each dimension; None where the device may choose."""
        return None

    def position(self, stmt: For, expressions: Expressions) -> str:
        """A work item's place in a loop, from 0, as an expression that binds as a product or tighter."""
        integer = expressions.integers.index_type.value
        number = next(k for k, loop in enumerate(self.grid) if loop is stmt)
        inner = len(self.grid) - 1 - number
        outer = self.grid[: -(DIMENSIONS - 1)]
        if inner < DIMENSIONS - 1 or len(outer) == 1:
            return f"({integer})get_global_id({inner})"
        sizes = [expressions.emit_index(loop.extent) for loop in outer]
        whole = sizes[0]
        for size in sizes[1:]:  # this notes where the number of work items may not fit
            whole = expressions.integers.index_product(whole, size)
        text = f"({integer})get_global_id({DIMENSIONS - 1})"
        rest: Fragment | None = None
        for size in sizes[number + 1 :]:
            rest = size if rest is None else expressions.integers.index_product(rest, size)
        if rest is not None:
            text = f"{text} / {rest.at(Binding.UNARY)}"
        return text if number == 0 else f"{text} % {sizes[number].at(Binding.UNARY)}"


def _product(factors: list[Expr]) -> Expr:
    found = factors[0]
    for factor in factors[1:]:
        found = binary(BinaryOp.MUL, found, factor)
    return found
