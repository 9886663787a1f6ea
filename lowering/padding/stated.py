"""Padding that a program's text tells of, where no record does: what it assumes of a buffer at its start, or fills at its end.

Source: the seed `layout-transformation-padding-roadmap`, whose examples have their padding's values inferred from such stages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.expr import TRUE, Compare, CompareOp, Expr, Logical, LogicalOp, Not, Var, const, logical_and, logical_or
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, AttrStmt, Block, BufferStore, DeclBuffer, Evaluate, For, IfThenElse, Seq, Stmt
from layoutproof.ir.visit import free_variables, substitute, walk
from layoutproof.lowering.effects import is_pure


@dataclass(frozen=True, slots=True)
class _Said:
    """That `buffer[index]` holds one value wherever `padding` holds, for all values of `loops`; `stored` where the program sees to it."""

    buffer: Buffer
    index: tuple[Expr, ...]
    padding: Expr
    loops: tuple[For, ...]
    stored: bool


def stated_elements(func: PrimFunc, buffer: Buffer, cells: Sequence[Var]) -> Expr | None:
    """Where, over `cells`, a buffer is not said to be padding; None where nothing is said of it.

    What is assumed of a buffer counts before what is stored; of several stages that fill one, the last.
    """
    said = [s for s in _stages(func.body, (), {}, TRUE) if s.buffer == buffer]
    chosen = [s for s in said if not s.stored] or [s for s in said if s.stored][-1:]
    found = [condition for s in chosen if (condition := _over_cells(s, cells)) is not None]
    return logical_and(*map(_negated, found)) if found else None


def _over_cells(said: _Said, cells: Sequence[Var]) -> Expr | None:
    """The padding over the cells; None where the stage does not go through the whole buffer, cell by cell."""
    loops = {loop.var: loop for loop in said.loops}
    names: dict[Var, Expr] = {}
    for index, extent, cell in zip(said.index, said.buffer.shape, cells, strict=True):
        loop = loops.get(index) if isinstance(index, Var) else None
        if loop is None or loop.start != const(0, loop.start.dtype) or loop.extent != extent or loop.var in names:
            return None
        names[loop.var] = cell
    if not set(free_variables(said.padding)) & set(loops) <= set(names):
        return None
    return substitute(said.padding, names)


def _stages(stmt: Stmt, loops: tuple[For, ...], known: Mapping[Var, Expr], held: Expr) -> Iterator[_Said]:
    """What is said of padding below a statement; `known` has block variables over loops, `held` the conditions around."""
    match stmt:
        case For(body=body):
            yield from _stages(body, (*loops, stmt), known, held)
        case Block(body=body):
            inner = {**known, **{i.var: substitute(i.binding, known) for i in stmt.iter_vars}}
            yield from _stages(body, loops, inner, _both(held, substitute(stmt.where, inner)))
        case IfThenElse(condition=condition, then=then, otherwise=None):
            yield from _stages(then, loops, known, _both(held, substitute(condition, known)))
        case Seq(body=parts):
            for part in parts:
                yield from _stages(part, loops, known, held)
        case Evaluate(value=Assume(condition=condition)) if held == TRUE:
            yield from _assumed(substitute(condition, known), loops)
        case BufferStore(buffer=buffer, indices=indices, value=value) if held != TRUE and is_pure(held, value, *indices):
            yield _Said(buffer, tuple(substitute(i, known) for i in indices), held, loops, stored=True)
        case Allocate(body=body) | DeclBuffer(body=body) | AttrStmt(body=body):
            yield from _stages(body, loops, known, held)
        case _:
            return


def _both(first: Expr, second: Expr) -> Expr:
    return second if first == TRUE else first if second == TRUE else logical_and(first, second)


def _assumed(condition: Expr, loops: tuple[For, ...]) -> Iterator[_Said]:
    """`element(cell) or A[cell] == v` says that all other cells are padding."""
    parts = _disjuncts(condition)
    equations = [part for part in parts if isinstance(part, Compare) and part.op is CompareOp.EQ and isinstance(part.lhs, BufferLoad)]
    others = [part for part in parts if part not in equations]
    if len(equations) != 1 or not others or not is_pure(*others) or any(isinstance(n, BufferLoad) for n in walk(equations[0].rhs)):
        return
    load = equations[0].lhs
    assert isinstance(load, BufferLoad)
    yield _Said(load.buffer, load.indices, _negated(logical_or(*others)), loops, stored=False)


def _negated(condition: Expr) -> Expr:
    return condition.operand if isinstance(condition, Not) else Not(condition)


def _disjuncts(condition: Expr) -> tuple[Expr, ...]:
    if isinstance(condition, Logical) and condition.op is LogicalOp.OR:
        return (*_disjuncts(condition.lhs), *_disjuncts(condition.rhs))
    return (condition,)
