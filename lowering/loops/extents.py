"""Shrinking loops to the iterations that a guard lets through."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

from layoutproof.ir.expr import BinaryOp, Compare, Expr, Logical, LogicalOp, Not, Var, binary, const, logical_and
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import Block, For, ForKind, IfThenElse, Stmt
from layoutproof.ir.visit import map_children, substitute
from layoutproof.lowering.affine import Affine, affine_of
from layoutproof.lowering.arguments import ArgumentKind
from layoutproof.lowering.effects import is_pure
from layoutproof.lowering.known import Scope, conjuncts
from layoutproof.lowering.layout import ROOT
from layoutproof.lowering.loops.guard_bounds import Bounds, GuardReader, written
from layoutproof.lowering.loops.guards import parts_of
from layoutproof.lowering.loops.nest import depends, loops_of_block, under
from layoutproof.lowering.passes import Pass, option
from layoutproof.lowering.scopes import symbol_scope
from layoutproof.lowering.witness import rewrite_of

_KINDS = (ForKind.SERIAL, ForKind.PARALLEL)


@dataclass(frozen=True)
class ReduceLoopExtents(Pass):
    """Shrink serial and parallel loops of which a guard lets only some iterations through (the roadmap's transform of that name).

    A loop shrinks where all that it does is one guard without `else`, or loops over such a guard; a block's own guard is one where it
    has no init. The new range is from the least to the largest iteration that may pass, over all inner loops; where the guard is a union
    it is that of its hull. What the new range says already is left out of the guard. `block` names the loops around one block, `root`
    all loops of the function.
    """

    primitive: ClassVar[str] = "reduce_loop_extents"
    block: str = field(default=ROOT, metadata=option(ArgumentKind.NAME))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with smaller loops; unchanged where there are none to shrink. Raises LayoutproofError where there is no such
        block.
        """
        loops = loops_of_block(func, self.block)
        shrinking = _Shrinking(frozenset(id(loop) for loop in loops))
        return rewrite_of(func, func.with_body(shrinking.statement(func.body, symbol_scope(func))))


@dataclass(slots=True)
class _Shrinking:
    """Rebuilds a body with smaller loops. `wanted` are the loops that may shrink, by identity; `shrunk` the variables of those around
    that did. `said` are conjuncts of guards, by statement and number, that are what some loop's new range says.
    """

    wanted: frozenset[int]
    shrunk: list[Var] = field(default_factory=list)
    said: set[tuple[int, int]] = field(default_factory=set)

    def statement(self, stmt: Stmt, scope: Scope) -> Stmt:
        """`stmt` where `scope` is what is known around it."""
        match stmt:
            case For():
                return self.loop(stmt, scope)
            case IfThenElse(condition=condition, then=then, otherwise=None):
                inside = self.statement(then, scope.with_condition(condition))
                left = self.left(stmt, condition, scope)
                if left is None:
                    return stmt if inside is then else replace(stmt, then=inside)
                return under(left, inside)
            case Block():
                return self.block(stmt, scope)
            case _:
                return map_children(stmt, lambda node: self.below(node, scope))

    def below(self, node: Node, scope: Scope) -> Node:
        return self.statement(node, scope) if isinstance(node, Stmt) else node

    def block(self, block: Block, scope: Scope) -> Block:
        inner = scope
        for iter_var in block.iter_vars:
            inner = inner.with_value(iter_var.var, iter_var.binding)
        left = self.left(block, block.where, inner)
        where = block.where if left is None else logical_and(*left)
        inner = inner.with_condition(where)
        result = map_children(block, lambda node: self.below(node, inner))
        return result if where == block.where else replace(result, where=where)

    def left(self, stmt: Stmt, condition: Expr, scope: Scope) -> list[Expr] | None:
        """The conjuncts of a statement's guard that smaller loops do not say already; None where all stay."""
        parts = parts_of(condition)
        left = [part for n, part in enumerate(parts) if not self.is_said(stmt, n, part, scope)]
        return None if len(left) == len(parts) else left

    def is_said(self, stmt: Stmt, number: int, part: Expr, scope: Scope) -> bool:
        return (id(stmt), number) in self.said or (depends(part, self.shrunk) and is_pure(part) and _holds(part, scope))

    def loop(self, loop: For, scope: Scope) -> Stmt:
        smaller = self.smaller(loop, scope)
        if smaller is loop:
            inside = self.statement(loop.body, scope.with_range(loop.var, loop.start, loop.extent))
            return loop if inside is loop.body else replace(loop, body=inside)
        self.shrunk.append(loop.var)
        result = replace(smaller, body=self.statement(loop.body, scope.with_range(loop.var, smaller.start, smaller.extent)))
        self.shrunk.pop()
        return result

    def smaller(self, loop: For, scope: Scope) -> For:
        """The loop with a smaller range; the same object where none is found."""
        if id(loop) not in self.wanted or loop.kind not in _KINDS or not is_pure(loop.start, loop.extent):
            return loop
        start = affine_of(loop.start)
        end = start + affine_of(loop.extent)
        whole = Bounds((start,), (end,))
        found, exact = Bounds(), set[tuple[int, int]]()
        for guard in _guards_below(loop.body, ()):
            reader = GuardReader(loop, guard.inner, scope, whole)
            for number, part in enumerate(guard.parts):
                found += reader.bounds(part)
                if reader.says_all(part):
                    exact.add((id(guard.stmt), number))
        reader = GuardReader(loop, (), scope, whole)
        low = reader.extreme((start, *found.lows), BinaryOp.MAX)
        past = reader.extreme((end, *found.ends), BinaryOp.MIN)
        if (low, past) == (start, end):
            return loop
        self.said |= exact
        return _ranging(loop, scope, low, past)


def _ranging(loop: For, scope: Scope, low: Affine, past: Affine) -> For:
    """The loop from `low` to before `past`; over nothing where the one is past the other."""
    dtype = loop.var.dtype
    extent = past - low
    if extent.is_constant and extent.constant <= 0:
        return replace(loop, extent=const(0, dtype))
    size = written(extent, dtype)
    if not scope.is_nonnegative(extent):
        size = binary(BinaryOp.MAX, size, const(0, dtype))
    return replace(loop, start=written(low, dtype), extent=size)


@dataclass(frozen=True, slots=True)
class _Guard:
    """The conjuncts that a branch or a block is guarded by, over loops; `inner` are the loops between it and where the search began."""

    stmt: Stmt
    parts: tuple[Expr, ...]
    inner: tuple[For, ...]


def _guards_below(stmt: Stmt, inner: tuple[For, ...]) -> Iterator[_Guard]:
    """The guards that decide over all that a statement does."""
    match stmt:
        case For(start=start, extent=extent) if is_pure(start, extent):
            yield from _guards_below(stmt.body, (*inner, stmt))
        case IfThenElse(condition=condition, then=then, otherwise=None):
            yield _Guard(stmt, parts_of(condition), inner)
            yield from _guards_below(then, inner)
        case Block(init=None):
            values = {i.var: i.binding for i in stmt.iter_vars}
            if is_pure(*values.values()):
                yield _Guard(stmt, tuple(substitute(part, values) for part in parts_of(stmt.where)), inner)
        case _:
            return


def _holds(condition: Expr, scope: Scope, holds: bool = True) -> bool:
    """Whether a condition is known to have a truth value."""
    match condition:
        case Not():
            return _holds(condition.operand, scope, not holds)
        case Logical():
            both = (condition.op is LogicalOp.AND) == holds
            sides = (_holds(side, scope, holds) for side in (condition.lhs, condition.rhs))
            return all(sides) if both else any(sides)
        case Compare():
            forms = conjuncts(condition, holds)
            return (bool(forms) and all(scope.is_nonnegative(form) for form in forms)) or (holds and scope.proves(condition))
        case _:
            return False
