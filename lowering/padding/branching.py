"""Guarding padding: iterations that only touch padding, and that nobody needs, are kept from running.

The reverse of dropping guards. Source: the seed `layout-transformation-padding-roadmap`, `remove_overcompute_through_branching`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice
from typing import ClassVar

from layoutproof.ir.diagnostic import counted, error
from layoutproof.ir.expr import Expr, Var, logical_and
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import Allocate, AttrStmt, Block, BufferStore, DeclBuffer, For, IfThenElse, Let, Seq, Stmt, seq
from layoutproof.ir.visit import free_variables, substitute
from layoutproof.lowering import codes
from layoutproof.lowering.arguments import ArgumentKind
from layoutproof.lowering.effects import is_pure
from layoutproof.lowering.known import Scope
from layoutproof.lowering.loops.guards import guarded_block
from layoutproof.lowering.loops.nest import under
from layoutproof.lowering.padding.elements import left_of
from layoutproof.lowering.padding.places import Place, places_of
from layoutproof.lowering.passes import Pass, option
from layoutproof.lowering.scopes import symbol_scope
from layoutproof.lowering.witness import rewrite_of

MAX_CANDIDATES = 16
"""Sets of places that are tried, at most, when none are named."""

Conditions = tuple[Expr, ...]


@dataclass(frozen=True)
class RemoveOvercomputeThroughBranching(Pass):
    """Guard what only touches padding (the roadmap's `remove_overcompute_through_branching`).

    The places where a block may touch padding are numbered in the order of the text: each is a store with a buffer that it writes or
    reads. At those in `places` (null: at all) nothing runs any more where that buffer's cell holds no element. Blocks take a guard into
    their own; among plain loops it stands as far out as it holds for everything below.
    """

    primitive: ClassVar[str] = "remove_overcompute_through_branching"
    block: str = field(metadata=option(ArgumentKind.NAME))
    places: tuple[int, ...] | None = field(default=None, metadata=option(ArgumentKind.CHOICES))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the guards. Raises LayoutproofError for a block that touches no padding, and for a number without a place."""
        found = found_places(func, self.block)
        chosen = range(len(found)) if self.places is None else self.places
        for number in chosen:
            if not 0 <= number < len(found):
                message = f"block {self.block} touches padding at {counted(len(found), 'place', 'places')}, there is no place {number}"
                raise error(codes.NO_PADDING, message, help="; ".join(f"{n}: {place}" for n, place in enumerate(found)))
        guarding = _Guarding([found[n] for n in chosen])
        return rewrite_of(func, func.with_body(guarding.within(func.body, symbol_scope(func))))


def found_places(func: PrimFunc, block: str) -> tuple[Place, ...]:
    """The places where a block may touch padding. Raises LayoutproofError where there is none."""
    found = places_of(func, block)
    if not found:
        message = f"block {block} has nothing to keep away from padding: what it touches are elements, or padding that it is there to fill"
        raise error(codes.NO_PADDING, message, func.span)
    return found


def candidates(func: PrimFunc, block: str) -> tuple[RemoveOvercomputeThroughBranching, ...]:
    """What may be guarded, much before little: the first is everything. Raises LayoutproofError as `propose` does."""
    count = len(found_places(func, block))
    return tuple(RemoveOvercomputeThroughBranching(block, chosen) for chosen in islice(_subsets(count), MAX_CANDIDATES))


def _subsets(count: int) -> Iterator[tuple[int, ...]]:
    """Sets of places, the largest first."""
    for size in range(count, 0, -1):
        yield from combinations(range(count), size)


@dataclass(frozen=True, slots=True)
class _Guarding:
    """Puts the conditions of places around their stores, as far out as they hold for all that is there."""

    places: Sequence[Place]

    def within(self, stmt: Stmt, scope: Scope) -> Stmt:
        """The statement, guarded where that is needed."""
        inner, conditions = self.statement(stmt, scope)
        return under(conditions, inner)

    def statement(self, stmt: Stmt, scope: Scope) -> tuple[Stmt, Conditions]:
        """The statement, and the conditions that must hold around all of it."""
        match stmt:
            case BufferStore():
                wanted = (c for place in self.places if place.store is stmt for c in place.conditions)
                return stmt, tuple(dict.fromkeys(wanted))
            case Block():
                return self.block(stmt, scope), ()
            case For(var=var, start=start, extent=extent):
                body, conditions = self.statement(stmt.body, scope.with_range(var, start, extent))
                return self.bound(stmt, var, body, conditions)
            case Let(var=var, value=value):
                known = scope.with_value(var, value) if is_pure(value) else scope
                body, conditions = self.statement(stmt.body, known)
                return self.bound(stmt, var, body, conditions)
            case IfThenElse():
                return self.branch(stmt, scope), ()
            case Seq():
                return self.sequence(stmt, scope)
            case Allocate() | DeclBuffer() | AttrStmt():
                return replace(stmt, body=self.within(stmt.body, scope)), ()
            case _:
                return stmt, ()

    @staticmethod
    def bound(stmt: For | Let, var: Var, body: Stmt, conditions: Conditions) -> tuple[Stmt, Conditions]:
        """A statement that binds a variable: what does not speak of it holds around it, too."""
        inside = tuple(c for c in conditions if var in free_variables(c))
        outside = tuple(c for c in conditions if c not in inside)
        return replace(stmt, body=under(inside, body)), outside

    def branch(self, stmt: IfThenElse, scope: Scope) -> Stmt:
        then, conditions = self.statement(stmt.then, scope.with_condition(stmt.condition))
        if stmt.otherwise is not None:
            otherwise = self.within(stmt.otherwise, scope.with_condition(stmt.condition, False))
            return replace(stmt, then=under(conditions, then), otherwise=otherwise)
        return replace(stmt, condition=logical_and(stmt.condition, *conditions), then=then)

    def sequence(self, stmt: Seq, scope: Scope) -> tuple[Stmt, Conditions]:
        parts = [self.statement(part, scope) for part in stmt.body]
        common = tuple(c for c in parts[0][1] if all(c in conditions for _, conditions in parts)) if parts else ()
        guarded: list[Stmt] = []
        for part, conditions in parts:
            left = [c for c in conditions if c not in common]
            guarded.append(under(left, part))
        return seq(*guarded), common

    def block(self, block: Block, scope: Scope) -> Stmt:
        inner = scope
        for iter_var in block.iter_vars:
            inner = inner.with_value(iter_var.var, iter_var.binding)
        body, conditions = self.statement(block.body, inner.with_condition(block.where))
        if block.init is not None:
            # The block's own guard would keep the init off as well.
            return replace(block, body=under(left_of(conditions, inner.with_condition(block.where)), body))
        values = {i.var: i.binding for i in block.iter_vars}
        over_loops = left_of([substitute(c, values) for c in conditions], scope.with_condition(block.where))
        own = replace(block, body=body)
        return guarded_block(own, logical_and(*over_loops)) if over_loops else own
