"""Guards: where the condition that keeps added iterations from doing anything stands, in blocks and among plain loops."""

from __future__ import annotations

from dataclasses import replace

from layoutproof.ir.expr import TRUE, Expr, Logical, LogicalOp, Var, logical_and
from layoutproof.ir.stmt import Block, For, IfThenElse, Seq, Stmt, seq
from layoutproof.ir.visit import walk
from layoutproof.lowering.effects import is_pure
from layoutproof.lowering.index_simplify import IndexSimplifier
from layoutproof.lowering.known import Scope


def parts_of(condition: Expr) -> tuple[Expr, ...]:
    """The conjuncts of a condition as they are written, from left to right; none for a condition that is always true."""
    if isinstance(condition, Logical) and condition.op is LogicalOp.AND:
        return (*parts_of(condition.lhs), *parts_of(condition.rhs))
    return () if condition == TRUE else (condition,)


def guarded(stmt: Stmt, guard: Expr) -> Stmt:
    """`stmt` where it runs only under `guard`: blocks take it into their own guard, anything else gets a branch around it."""
    if guard == TRUE:
        return stmt
    if not any(isinstance(node, Block) for node in walk(stmt)):
        return IfThenElse(guard, stmt)
    match stmt:
        case Block():
            return guarded_block(stmt, guard)
        case For(start=start, extent=extent) if is_pure(start, extent):
            return replace(stmt, body=guarded(stmt.body, guard))
        case Seq(body=body):
            return seq(*(guarded(part, guard) for part in body))
        case IfThenElse(condition=condition) if is_pure(condition):
            otherwise = guarded(stmt.otherwise, guard) if stmt.otherwise is not None else None
            return replace(stmt, then=guarded(stmt.then, guard), otherwise=otherwise)
        case _:
            return IfThenElse(guard, stmt)


def guarded_block(block: Block, guard: Expr) -> Block:
    """A block under a guard, its init included."""
    return replace(block, where=logical_and(*parts_of(block.where), *parts_of(guard)))


def tidied(stmt: Stmt, scope: Scope) -> Stmt:
    """The outermost blocks below with their bindings simplified; `scope` is what loops around `stmt` say."""
    match stmt:
        case Block():
            simplifier = IndexSimplifier(scope)
            plain = (i.binding if isinstance(i.binding, Var) else simplifier.simplify(i.binding) for i in stmt.iter_vars)
            return replace(stmt, iter_vars=tuple(replace(i, binding=b) for i, b in zip(stmt.iter_vars, plain, strict=True)))
        case For(var=var, start=start, extent=extent):
            return replace(stmt, body=tidied(stmt.body, scope.with_range(var, start, extent)))
        case IfThenElse(otherwise=None):
            return replace(stmt, then=tidied(stmt.then, scope))
        case Seq(body=body):
            return seq(*(tidied(part, scope) for part in body))
        case _:
            return stmt
