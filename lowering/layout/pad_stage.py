"""The program text of a padding contract: a stage for a postcondition, or for an assumption.

Source: the seed `layout-transformation-padding-roadmap`: the postlude of a producer, the assumption of a consumer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from layoutproof.ir.buffer import Buffer, BufferLoad, BufferRegion, Range
from layoutproof.ir.expr import TRUE, Expr, Not, Var, compare, const, logical_or
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.layout_record import Contract
from layoutproof.ir.node import Node
from layoutproof.ir.operators import CompareOp
from layoutproof.ir.primfunc import PrimFunc
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
    Seq,
    Stmt,
    seq,
)
from layoutproof.ir.visit import fresh, map_children, names_in, substitute, take_fresh, walk
from layoutproof.lowering.passes.effects import data_written


@dataclass(frozen=True, slots=True)
class Padding:
    """The padding of one transform: a physical buffer, where its padding is (over `variables`), and what it holds."""

    buffer: Buffer
    variables: tuple[Var, ...]
    predicate: Expr
    value: Contract


def padding_stage(padding: Padding, taken: set[str]) -> Stmt:
    """`for p in grid(box): if is_padding(p): B[p] = v`, as a block. `taken` are names in use."""

    def body(cell: tuple[Expr, ...]) -> Stmt:
        return BufferStore(padding.buffer, cell, padding.value.at(cell))

    return _stage(padding, f"buffer_{padding.buffer.name}_padding", taken, body_guarded=True, writes=True, make=body)


def assume_stage(padding: Padding, taken: set[str]) -> Stmt:
    """`for p in grid(box): assume(not is_padding(p) or A[p] == v)`, as a block."""

    def body(cell: tuple[Expr, ...]) -> Stmt:
        known = compare(CompareOp.EQ, BufferLoad(padding.buffer, cell), padding.value.at(cell))
        predicate = substitute(padding.predicate, dict(zip(padding.variables, cell, strict=True)))
        return Evaluate(Assume(logical_or(Not(predicate), known)))

    return _stage(
        padding, f"buffer_{padding.buffer.name}_assumptions", taken, body_guarded=False, writes=False, make=body
    )


def _stage(
    padding: Padding,
    name: str,
    taken: set[str],
    *,
    body_guarded: bool,
    writes: bool,
    make: Callable[[tuple[Expr, ...]], Stmt],
) -> Stmt:
    loops: list[Var] = []
    iter_vars: list[IterVar] = []
    used = set(taken)
    for variable, extent in zip(padding.variables, padding.buffer.shape, strict=True):
        loop = Var(take_fresh(variable.name, used), extent.dtype)
        axis = Var(take_fresh(f"v_{loop.name}", used), extent.dtype)
        loops.append(loop)
        iter_vars.append(IterVar(axis, IterKind.SPATIAL, Range(const(0, extent.dtype), extent), loop))
    cell = tuple(v.var for v in iter_vars)
    guard = substitute(padding.predicate, dict(zip(padding.variables, loops, strict=True))) if body_guarded else TRUE
    own = BufferRegion.cell(padding.buffer, cell)
    loads = [n for n in walk(padding.value.at(cell)) if isinstance(n, BufferLoad)]
    regions = tuple(BufferRegion.cell(load.buffer, load.indices) for load in loads)
    statement: Stmt = Block(
        fresh(name, used),
        tuple(iter_vars),
        make(cell),
        where=guard,
        reads=regions if writes else (own, *regions),
        writes=(own,) if writes else (),
    )
    for loop, extent in reversed(list(zip(loops, padding.buffer.shape, strict=True))):
        statement = For(loop, const(0, extent.dtype), extent, ForKind.SERIAL, statement)
    return statement


def with_padding_stage(func: PrimFunc, padding: Padding) -> PrimFunc:
    """The function with the padding written right after the last stage that writes the buffer."""
    stage = padding_stage(padding, taken_names(func))
    return func.with_body(
        _in_home(func.body, padding.buffer, func, lambda home: _after_last_write(home, padding.buffer, stage))
    )


def with_assume_stage(func: PrimFunc, padding: Padding) -> PrimFunc:
    """The function with the assumption at its start."""
    stage = assume_stage(padding, taken_names(func))
    return func.with_body(_in_home(func.body, padding.buffer, func, lambda home: seq(stage, home)))


def taken_names(func: PrimFunc) -> set[str]:
    """Every name in use in a function."""
    return (
        names_in(func.body)
        | {p.name for p in func.params}
        | {n for b in func.buffers for n in (b.name, b.data.name)}
        | _symbols(func)
    )


def _symbols(func: PrimFunc) -> set[str]:
    return {node.name for b in func.buffers for node in walk(b) if isinstance(node, Var)}


def _in_home(stmt: Stmt, buffer: Buffer, func: PrimFunc, insert: Callable[[Stmt], Stmt]) -> Stmt:
    """The body with `insert` applied to the buffer's home: the statement that allocates it, or the function's body."""
    if buffer in func.buffers:
        return _in_shell(stmt, insert)

    def visit(node: Node) -> Node:
        if isinstance(node, Allocate) and node.buffer == buffer:
            return replace(node, body=_in_shell(node.body, insert))
        if isinstance(node, Block) and buffer in node.alloc_buffers:
            return replace(node, body=_in_shell(node.body, insert))
        return map_children(node, visit) if isinstance(node, Stmt) else node

    result = visit(stmt)
    assert isinstance(result, Stmt)
    return result


def _in_shell(stmt: Stmt, insert: Callable[[Stmt], Stmt]) -> Stmt:
    """The body with `insert` applied below declarations: allocations, aliases, a root block."""
    if isinstance(stmt, Allocate | DeclBuffer | AttrStmt | Let) or (isinstance(stmt, Block) and stmt.is_root):
        return replace(stmt, body=_in_shell(stmt.body, insert))
    return insert(stmt)


def _after_last_write(home: Stmt, buffer: Buffer, stage: Stmt) -> Stmt:
    parts: Sequence[Stmt] = home.body if isinstance(home, Seq) else (home,)
    writers = [n for n, part in enumerate(parts) if buffer.data in data_written(part)]
    last = writers[-1] if writers else len(parts) - 1
    return seq(*parts[: last + 1], stage, *parts[last + 1 :])
