"""Guards: the conditions that exclude additional iterations, by their place and their number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from layoutproof.ir.expr import TRUE, Expr, IfThenElseExpr, Logical, Var, logical_and
from layoutproof.ir.node import Node
from layoutproof.ir.operators import LogicalOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, BufferStore, For, IfThenElse, Seq, Stmt, seq
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import children, walk
from layoutproof.lowering.arith.index_simplify import IndexSimplifier
from layoutproof.lowering.arith.known_facts import Scope
from layoutproof.lowering.layout.transform_layout import ROOT
from layoutproof.lowering.loops.nest import own_path
from layoutproof.lowering.passes.effects import is_pure
from layoutproof.lowering.passes.find import find_block


def parts_of(condition: Expr) -> tuple[Expr, ...]:
    """The conjuncts of a condition from left to right; none for a condition that is always true."""
    if isinstance(condition, Logical) and condition.op is LogicalOp.AND:
        return (*parts_of(condition.lhs), *parts_of(condition.rhs))
    return () if condition == TRUE else (condition,)


def guarded(stmt: Stmt, guard: Expr) -> Stmt:
    """`stmt` under `guard`: blocks take it into their own guard, anything else gets a branch around it."""
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
            plain = (
                i.binding if isinstance(i.binding, Var) else simplifier.simplify(i.binding) for i in stmt.iter_vars
            )
            return replace(
                stmt, iter_vars=tuple(replace(i, binding=b) for i, b in zip(stmt.iter_vars, plain, strict=True))
            )
        case For(var=var, start=start, extent=extent):
            return replace(stmt, body=tidied(stmt.body, scope.with_range(var, start, extent)))
        case IfThenElse(otherwise=None):
            return replace(stmt, then=tidied(stmt.then, scope))
        case Seq(body=body):
            return seq(*(tidied(part, scope) for part in body))
        case _:
            return stmt


class GuardKind(StrEnum):
    """The place of a guard."""

    AROUND = "a branch around the block"
    BLOCK = "the block's own guard"
    INSIDE = "a branch inside the block"
    VALUE = "a choice inside a value"


@dataclass(frozen=True, slots=True)
class GuardSite:
    """One condition that can be dropped: conjunct `part` of the guard of `node`; the whole condition if there is an
    alternative.
    """

    node: IfThenElse | Block | IfThenElseExpr
    part: int
    condition: Expr
    kind: GuardKind
    has_alternative: bool

    def __str__(self) -> str:
        return f"`{expr_text(self.condition)}` ({self.kind.value})"


def guard_sites(func: PrimFunc, block: str) -> tuple[GuardSite, ...]:
    """The guards of a block from the outside to the inside; for `root`, all of the function in textual order.

    Raises LayoutproofError if there is no such block, or two.
    """
    if block == ROOT:
        return tuple(_inside(func.body, GuardKind.BLOCK))
    target = find_block(func, block)
    around = [
        s for stmt in own_path(func, target) if isinstance(stmt, IfThenElse) for s in _of_branch(stmt, GuardKind.AROUND)
    ]
    own = [GuardSite(target, n, c, GuardKind.BLOCK, False) for n, c in enumerate(parts_of(target.where))]
    inits = [] if target.init is None else list(_inside(target.init, GuardKind.INSIDE))
    return (*around, *own, *inits, *_inside(target.body, GuardKind.INSIDE))


def _inside(stmt: Stmt, blocks: GuardKind) -> Iterator[GuardSite]:
    for node in walk(stmt):
        if isinstance(node, IfThenElse):
            yield from _of_branch(node, GuardKind.INSIDE)
        elif isinstance(node, Block):
            yield from (GuardSite(node, n, c, blocks, False) for n, c in enumerate(parts_of(node.where)))
        elif isinstance(node, BufferStore):
            yield from (GuardSite(e, 0, e.condition, GuardKind.VALUE, True) for e in _choices(node.value))


def _of_branch(branch: IfThenElse, kind: GuardKind) -> Iterator[GuardSite]:
    if branch.otherwise is not None:
        yield GuardSite(branch, 0, branch.condition, kind, True)
        return
    yield from (GuardSite(branch, n, c, kind, False) for n, c in enumerate(parts_of(branch.condition)))


def _choices(node: Node) -> Iterator[IfThenElseExpr]:
    if isinstance(node, IfThenElseExpr):
        yield node
    for child in children(node):
        if isinstance(child, Expr):
            yield from _choices(child)
