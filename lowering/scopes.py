"""What is known at the start of a function: symbols of shapes are at least 0, and what its own assumptions say of them."""

from __future__ import annotations

from collections.abc import Iterator

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import Expr, Var, logical_and
from layoutproof.ir.interval import Interval
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, AttrStmt, Block, DeclBuffer, Evaluate, Seq, Stmt
from layoutproof.ir.visit import free_variables, walk
from layoutproof.lowering.known import Known, Scope


def shape_symbols(func: PrimFunc) -> tuple[Var, ...]:
    """The variables in the shapes of the parameters' buffers, in order of appearance."""
    found: dict[Var, None] = {}
    for buffer in func.buffers:
        for extent in buffer.shape:
            found.update(dict.fromkeys(free_variables(extent)))
    return tuple(found)


def constants_of(func: PrimFunc) -> tuple[Var, ...]:
    """The integers that are the same throughout a call: the symbols of shapes and the integer parameters."""
    scalars = (p for p in func.params if p.dtype.is_integer)
    return tuple(dict.fromkeys((*shape_symbols(func), *scalars)))


def assumed_of_constants(func: PrimFunc) -> Expr | None:
    """What the function's own unconditional assumptions say of its constants, as one condition; None where they say nothing."""
    known = set(constants_of(func))
    found = [c for c in _assumptions(func.body) if set(free_variables(c)) <= known and not any(isinstance(n, BufferLoad) for n in walk(c))]
    return logical_and(*found) if found else None


def _assumptions(stmt: Stmt) -> Iterator[Expr]:
    if isinstance(stmt, Evaluate) and isinstance(stmt.value, Assume):
        yield stmt.value.condition
    elif isinstance(stmt, Seq):
        for part in stmt.body:
            yield from _assumptions(part)
    elif isinstance(stmt, Allocate | DeclBuffer | AttrStmt) or (isinstance(stmt, Block) and stmt.is_root):
        yield from _assumptions(stmt.body)


def symbol_scope(func: PrimFunc) -> Scope:
    """The scope at a function's start."""
    scope = Scope({symbol: Known(Interval(0, symbol.dtype.max_int)) for symbol in shape_symbols(func)})
    condition = assumed_of_constants(func)
    return scope if condition is None else scope.with_condition(condition)
