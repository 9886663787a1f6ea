"""Guarding padding: iterations that touch only padding, without observable effect, are excluded.

Source: TVM's RFC `layout-transformation-padding-roadmap`, `remove_overcompute_through_branching`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice
from typing import Any, ClassVar

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import counted, error
from layoutproof.ir.expr import FALSE, Expr, IfThenElseExpr, Logical, Not, Var, logical_and
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import Allocate, AttrStmt, Block, BufferStore, DeclBuffer, For, IfThenElse, Let, Seq, Stmt, seq
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import children, free_variables, substitute
from layoutproof.lowering import codes
from layoutproof.lowering.arith.index_simplify import IndexSimplifier
from layoutproof.lowering.arith.known_facts import Scope, conjuncts, symbol_scope
from layoutproof.lowering.layout.transform_layout import ROOT
from layoutproof.lowering.loops.nest import guarded_block, under
from layoutproof.lowering.padding.elements import Elements, left_of
from layoutproof.lowering.passes.base import ArgumentKind, Pass, option
from layoutproof.lowering.passes.effects import is_pure
from layoutproof.lowering.passes.find import find_block
from layoutproof.lowering.passes.witness_maps import rewrite_of

_SHOWN = 60  # characters of a store in a message


@dataclass(frozen=True, slots=True)
class Place:
    """One store and one buffer that it accesses: `conditions` exclude that buffer's padding.

    They are over the variables in scope of the store.
    """

    store: BufferStore
    buffer: Buffer
    conditions: tuple[Expr, ...]

    def __str__(self) -> str:
        indices = ", ".join(expr_text(i, Style.PLAIN) for i in self.store.indices)
        text = f"{self.store.buffer.name}[{indices}] = {expr_text(self.store.value, Style.PLAIN)}"
        shown = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
        verb = "writes" if self.store.buffer == self.buffer else "reads"
        return (
            f"`{shown}` {verb} {self.buffer.name}, which has elements where "
            f"{expr_text(logical_and(*self.conditions), Style.PLAIN)}"
        )


def places_of(func: PrimFunc, block: str) -> tuple[Place, ...]:
    """The places of a block where it may touch padding, in textual order; for `root`, those of the whole function.

    Inits are left out: their instances follow from what encloses their block. So are stores that only fill padding.
    Raises LayoutproofError if there is no such block, or two.
    """
    target = None if block == ROOT else find_block(func, block)
    elements = Elements(func)
    return tuple(_below(func.body, target, elements, _Around(symbol_scope(func), {}, ())))


@dataclass(frozen=True, slots=True)
class _Around:
    """What encloses a statement: known facts of its variables, `known` block variables and lets over loops, and the
    conditions under which it runs, over loops too.
    """

    scope: Scope
    known: Mapping[Var, Expr]
    held: tuple[Expr, ...]

    def under(self, condition: Expr, holds: bool = True) -> _Around:
        """Inside a branch."""
        said = substitute(condition, self.known)
        return _Around(
            self.scope.with_condition(condition, holds), self.known, (*self.held, said if holds else Not(said))
        )

    def in_loop(self, loop: For) -> _Around:
        """Inside a loop."""
        return _Around(self.scope.with_range(loop.var, loop.start, loop.extent), self.known, self.held)

    def with_values(self, values: Mapping[Var, Expr]) -> _Around:
        """With variables bound to expressions that are independent of one another."""
        scope = self.scope
        for var, value in values.items():
            scope = scope.with_value(var, value)
        return _Around(
            scope, {**self.known, **{var: substitute(value, self.known) for var, value in values.items()}}, self.held
        )

    def excludes(self, condition: Expr) -> bool:
        """Whether the condition never holds here: such a store writes padding on purpose."""
        said = substitute(condition, self.known)
        if any(said in (Not(each), *((each.operand,) if isinstance(each, Not) else ())) for each in self.held):
            return True
        plain = IndexSimplifier(self.scope).simplify(said)
        opposite = conjuncts(plain, holds=False)
        return plain == FALSE or (bool(opposite) and all(map(self.scope.is_nonnegative, opposite)))


def _below(stmt: Stmt, target: Block | None, elements: Elements, around: _Around) -> Iterator[Place]:
    """The places below a statement; `target` is None inside of the requested block."""
    match stmt:
        case BufferStore():
            if target is None:
                yield from _of_store(stmt, elements, around)
        case Block():
            inner = around.with_values({i.var: i.binding for i in stmt.iter_vars}).under(stmt.where)
            yield from _below(stmt.body, None if stmt is target else target, elements, inner)
        case For():
            yield from _below(stmt.body, target, elements, around.in_loop(stmt))
        case IfThenElse(condition=condition):
            yield from _below(stmt.then, target, elements, around.under(condition))
            if stmt.otherwise is not None:
                yield from _below(stmt.otherwise, target, elements, around.under(condition, holds=False))
        case Let(var=var, value=value) if is_pure(value):
            yield from _below(stmt.body, target, elements, around.with_values({var: value}))
        case _:
            for child in children(stmt):
                if isinstance(child, Stmt):
                    yield from _below(child, target, elements, around)


def _of_store(store: BufferStore, elements: Elements, around: _Around) -> Iterator[Place]:
    found: dict[Buffer, list[Expr]] = {}
    for access in _always_touched(store):
        if is_pure(*access.indices) and not any(i.dtype.lanes > 1 for i in access.indices):
            found.setdefault(access.buffer, []).extend(elements.at(access.buffer, access.indices))
    for buffer, conditions in found.items():
        # Facts about loops decide more of the condition over loops.
        needed = [c for c in dict.fromkeys(conditions) if left_of((substitute(c, around.known),), around.scope)]
        plain = left_of(needed, around.scope)
        if plain and not any(map(around.excludes, needed)):
            yield Place(store, buffer, plain)


def _always_touched(store: BufferStore) -> Iterator[BufferLoad | BufferStore]:
    """The store, and the loads that happen whenever it does."""
    yield store

    def loads(node: Node) -> Iterator[BufferLoad]:
        if isinstance(node, Buffer):
            return
        if isinstance(node, BufferLoad):
            yield node
        parts = (
            (node.condition,)
            if isinstance(node, IfThenElseExpr)
            else (node.lhs,)
            if isinstance(node, Logical)
            else children(node)
        )
        for part in parts:
            yield from loads(part)

    for part in (*store.indices, store.value):
        yield from loads(part)


MAX_CANDIDATES = 16
"""Sets of places that are tried, at most, when none are named."""

Conditions = tuple[Expr, ...]


@dataclass(frozen=True)
class RemoveOvercomputeThroughBranching(Pass):
    """Guard what a block does with padding only; the step's text and the trace say which places.

    Places are stores with a buffer whose padding they may touch, in textual order. None tries all of them, then fewer,
    and keeps the largest set that is proved; in a trace, null is all. Blocks take a guard into their own; among plain
    loops it is as far out as it holds for everything below.
    """

    primitive: ClassVar[str] = "remove_overcompute_through_branching"
    block: str = field(metadata=option(ArgumentKind.NAME))
    places: tuple[int, ...] | None = field(default=None, metadata=option(ArgumentKind.CHOICES))

    @classmethod
    def tries(cls, func: PrimFunc, arguments: dict[str, Any]) -> Sequence[Pass]:
        """The pass with these places; without any, all that may be guarded, much before little."""
        given = cls.from_arguments(arguments)
        return (given,) if given.places is not None else candidates(func, given.block)

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the guards. Raises LayoutproofError for a block that touches no padding, and for an unknown
        place.
        """
        found = found_places(func, self.block)
        chosen = range(len(found)) if self.places is None else self.places
        for number in chosen:
            if not 0 <= number < len(found):
                message = (
                    f"block {self.block} touches padding at {counted(len(found), 'place', 'places')}, there is no "
                    f"place {number}"
                )
                raise error(codes.NO_PADDING, message, help="; ".join(f"{n}: {place}" for n, place in enumerate(found)))
        guarding = _Guarding([found[n] for n in chosen])
        return rewrite_of(func, func.with_body(guarding.within(func.body, symbol_scope(func))))


def found_places(func: PrimFunc, block: str) -> tuple[Place, ...]:
    """The places where a block may touch padding. Raises LayoutproofError if there is none."""
    found = places_of(func, block)
    if not found:
        message = (
            f"block {block} has nothing to keep away from padding: what it touches are elements, or padding that it is "
            "there to fill"
        )
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
    """Puts the conditions of places around their stores, as far out as they hold for everything inside."""

    places: Sequence[Place]

    def within(self, stmt: Stmt, scope: Scope) -> Stmt:
        """The statement, guarded if necessary."""
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
        """A statement that binds a variable: a guard that is free of it may move around it."""
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
            # The block's own guard would exclude the init too.
            return replace(block, body=under(left_of(conditions, inner.with_condition(block.where)), body))
        values = {i.var: i.binding for i in block.iter_vars}
        over_loops = left_of([substitute(c, values) for c in conditions], scope.with_condition(block.where))
        own = replace(block, body=body)
        return guarded_block(own, logical_and(*over_loops)) if over_loops else own
