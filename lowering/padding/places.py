"""Where a block touches padding: each store with each buffer by which it may reach beyond the elements, with a number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.expr import FALSE, Expr, IfThenElseExpr, Logical, Not, Var, logical_and
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, BufferStore, For, IfThenElse, Let, Stmt
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import children, substitute
from layoutproof.lowering.effects import is_pure
from layoutproof.lowering.find import find_block
from layoutproof.lowering.index_simplify import IndexSimplifier
from layoutproof.lowering.known import Scope, conjuncts
from layoutproof.lowering.layout import ROOT
from layoutproof.lowering.padding.elements import Elements, left_of
from layoutproof.lowering.scopes import symbol_scope

_SHOWN = 60  # characters of a store in a message


@dataclass(frozen=True, slots=True)
class Place:
    """One store and one buffer that it writes or reads: `conditions` keep it away from that buffer's padding.

    They are over the variables that stand around the store as it is written.
    """

    store: BufferStore
    buffer: Buffer
    conditions: tuple[Expr, ...]

    def __str__(self) -> str:
        indices = ", ".join(expr_text(i, Style.PLAIN) for i in self.store.indices)
        text = f"{self.store.buffer.name}[{indices}] = {expr_text(self.store.value, Style.PLAIN)}"
        shown = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
        verb = "writes" if self.store.buffer == self.buffer else "reads"
        return f"`{shown}` {verb} {self.buffer.name}, which has elements where {expr_text(logical_and(*self.conditions), Style.PLAIN)}"


def places_of(func: PrimFunc, block: str) -> tuple[Place, ...]:
    """The places of a block where it may touch padding, in the order of the text; for `root`, those of the whole function.

    Inits are left out: where they run follows from what is around their block. So are stores that write nothing but padding, which
    are there to do so. Raises LayoutproofError where there is no such block, or two.
    """
    target = None if block == ROOT else find_block(func, block)
    elements = Elements(func)
    return tuple(_below(func.body, target, elements, _Around(symbol_scope(func), {}, ())))


@dataclass(frozen=True, slots=True)
class _Around:
    """What stands around a statement: what is known of its variables, `known` block variables and lets over loops, and the conditions
    under which it runs, over loops too.
    """

    scope: Scope
    known: Mapping[Var, Expr]
    held: tuple[Expr, ...]

    def under(self, condition: Expr, holds: bool = True) -> _Around:
        """Inside a branch."""
        said = substitute(condition, self.known)
        return _Around(self.scope.with_condition(condition, holds), self.known, (*self.held, said if holds else Not(said)))

    def in_loop(self, loop: For) -> _Around:
        """Inside a loop."""
        return _Around(self.scope.with_range(loop.var, loop.start, loop.extent), self.known, self.held)

    def with_values(self, values: Mapping[Var, Expr]) -> _Around:
        """Where variables are bound to expressions, none of which speaks of another."""
        scope = self.scope
        for var, value in values.items():
            scope = scope.with_value(var, value)
        return _Around(scope, {**self.known, **{var: substitute(value, self.known) for var, value in values.items()}}, self.held)

    def excludes(self, condition: Expr) -> bool:
        """Whether the condition never holds here: such a store writes padding on purpose."""
        said = substitute(condition, self.known)
        if any(said in (Not(each), *((each.operand,) if isinstance(each, Not) else ())) for each in self.held):
            return True
        plain = IndexSimplifier(self.scope).simplify(said)
        opposite = conjuncts(plain, holds=False)
        return plain == FALSE or (bool(opposite) and all(map(self.scope.is_nonnegative, opposite)))


def _below(stmt: Stmt, target: Block | None, elements: Elements, around: _Around) -> Iterator[Place]:
    """The places below a statement; `target` is None inside of the block that is looked for."""
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
        # What is known of loops says more of the same condition over loops.
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
        parts = (node.condition,) if isinstance(node, IfThenElseExpr) else (node.lhs,) if isinstance(node, Logical) else children(node)
        for part in parts:
            yield from loads(part)

    for part in (*store.indices, store.value):
        yield from loads(part)
