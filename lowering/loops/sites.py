"""The guards of a block: conditions that decide whether something in it happens, each by a number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from layoutproof.ir.expr import Expr, IfThenElseExpr
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, BufferStore, IfThenElse, Stmt
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import children, walk
from layoutproof.lowering.find import find_block
from layoutproof.lowering.layout import ROOT
from layoutproof.lowering.loops.guards import parts_of
from layoutproof.lowering.loops.nest import own_path


class GuardKind(StrEnum):
    """Where a guard stands."""

    AROUND = "a branch around the block"
    BLOCK = "the block's own guard"
    INSIDE = "a branch inside the block"
    VALUE = "a choice inside a value"


@dataclass(frozen=True, slots=True)
class GuardSite:
    """One condition that can be dropped: conjunct `part` of the guard of `node`; the whole condition where there is an alternative."""

    node: IfThenElse | Block | IfThenElseExpr
    part: int
    condition: Expr
    kind: GuardKind
    has_alternative: bool

    def __str__(self) -> str:
        return f"`{expr_text(self.condition)}` ({self.kind.value})"


def guard_sites(func: PrimFunc, block: str) -> tuple[GuardSite, ...]:
    """The guards of a block from the outside to the inside; for `root`, all of the function in the order of the text.

    Raises LayoutproofError where there is no such block, or two.
    """
    if block == ROOT:
        return tuple(_inside(func.body, GuardKind.BLOCK))
    target = find_block(func, block)
    around = [s for stmt in own_path(func, target) if isinstance(stmt, IfThenElse) for s in _of_branch(stmt, GuardKind.AROUND)]
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
