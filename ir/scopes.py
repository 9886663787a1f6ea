"""Everything in a function with its role and the names in scope there: the view on which well-formedness is checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import Span
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import Expr, IfThenElseExpr, Select, Var
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, AttrStmt, Block, BufferStore, DeclBuffer, Evaluate, For, IfThenElse, Let, Stmt
from layoutproof.ir.visit import children, free_variables


class Role(StrEnum):
    """What an expression or a buffer is there for; the value is the word in messages."""

    VALUE = "a value"
    INDEX = "an index"
    CONDITION = "a condition"
    BOUND = "a bound or binding"
    SHAPE = "a shape"
    ACCESS = "an access"
    ALLOCATION = "an allocation"
    DECLARATION = "a declaration"
    STATEMENT = "a statement"


@dataclass(frozen=True, slots=True)
class Scope:
    """Names in scope: variables by name, buffers, names of data variables that have memory."""

    variables: Mapping[str, Var] = field(default_factory=dict)
    buffers: frozenset[Buffer] = frozenset()
    data: frozenset[str] = frozenset()

    def with_variables(self, *variables: Var) -> Scope:
        """The scope with more variables; a pointer is a data variable too."""
        pointers = frozenset(v.name for v in variables if v.dtype == HANDLE)
        return replace(self, variables={**self.variables, **{v.name: v for v in variables}}, data=self.data | pointers)

    def with_buffer(self, buffer: Buffer) -> Scope:
        """The scope with one more buffer and its data."""
        known = {**self.variables, buffer.data.name: buffer.data}
        return Scope(known, self.buffers | {buffer}, self.data | {buffer.data.name})


@dataclass(frozen=True, slots=True)
class Visit:
    """A statement, or an expression or buffer in it, with its scope. `rebound`: names that it binds again."""

    stmt: Stmt
    role: Role
    scope: Scope
    expr: Expr | None = None
    buffer: Buffer | None = None
    rebound: tuple[Var, ...] = ()
    at: Span | None = None

    @property
    def span(self) -> Span | None:
        """The place: the access's or expression's own, or the statement's."""
        if self.at is not None:
            return self.at
        return self.expr.span if self.expr is not None and self.expr.span is not None else self.stmt.span


@dataclass(frozen=True, slots=True)
class _Inside:
    """A statement inside another one, to be visited at this point."""

    stmt: Stmt
    scope: Scope


def function_scope(func: PrimFunc) -> Scope:
    """Parameters, their buffers, and the names that the buffers' shapes bring."""
    scope = Scope().with_variables(*func.params)
    for buffer in func.buffers:
        names = [v for e in (*buffer.shape, *buffer.strides, buffer.elem_offset) for v in free_variables(e)]
        scope = scope.with_variables(*(v for v in names if v.name not in scope.variables)).with_buffer(buffer)
    return scope


def visits(func: PrimFunc) -> Iterator[Visit]:
    """Everything in the body of a function, in program order."""
    # A stack of generators: `yield from` would pass each item up through all the statements around it.
    stack = [_statement(func.body, function_scope(func))]
    while stack:
        item = next(stack[-1], None)
        if item is None:
            stack.pop()
        elif isinstance(item, _Inside):
            stack.append(_statement(item.stmt, item.scope))
        else:
            yield item


def _bound(stmt: Stmt, scope: Scope, *variables: Var) -> tuple[Scope, Visit]:
    rebound = tuple(v for v in variables if v.name in scope.variables)
    return scope.with_variables(*variables), Visit(stmt, Role.STATEMENT, scope, rebound=rebound)


def _statement(stmt: Stmt, scope: Scope) -> Iterator[Visit | _Inside]:
    match stmt:
        case For():
            yield from _expr(stmt, stmt.start, Role.BOUND, scope)
            yield from _expr(stmt, stmt.extent, Role.BOUND, scope)
            inner, visit = _bound(stmt, scope, stmt.var)
            yield visit
            yield _Inside(stmt.body, inner)
        case Let():
            yield from _expr(stmt, stmt.value, Role.VALUE, scope)
            inner, visit = _bound(stmt, scope, stmt.var)
            yield visit
            yield _Inside(stmt.body, inner)
        case IfThenElse():
            yield Visit(stmt, Role.STATEMENT, scope)
            yield from _expr(stmt, stmt.condition, Role.CONDITION, scope)
            yield _Inside(stmt.then, scope)
            if stmt.otherwise is not None:
                yield _Inside(stmt.otherwise, scope)
        case BufferStore():
            yield Visit(stmt, Role.STATEMENT, scope)
            yield from _access(stmt, stmt.buffer, stmt.indices, scope, stmt.span)
            yield from _expr(stmt, stmt.value, Role.VALUE, scope)
        case Allocate() | DeclBuffer():
            yield from _buffer(
                stmt, stmt.buffer, scope, Role.ALLOCATION if isinstance(stmt, Allocate) else Role.DECLARATION
            )
            yield _Inside(stmt.body, scope.with_buffer(stmt.buffer))
        case Block():
            yield from _block(stmt, scope)
        case Evaluate():
            yield Visit(stmt, Role.STATEMENT, scope)
            yield from _expr(stmt, stmt.value, Role.VALUE, scope)
        case AttrStmt():
            yield Visit(stmt, Role.STATEMENT, scope)
            yield _Inside(stmt.body, scope)
        case _:
            for child in children(stmt):
                if isinstance(child, Stmt):
                    yield _Inside(child, scope)


def _block(block: Block, scope: Scope) -> Iterator[Visit | _Inside]:
    for v in block.iter_vars:
        for expr in (v.domain.start, v.domain.extent, v.binding):
            yield from _expr(block, expr, Role.BOUND, scope)
    inner, visit = _bound(block, scope, *(v.var for v in block.iter_vars))
    yield visit
    yield from _expr(block, block.where, Role.CONDITION, inner)
    for buffer in block.alloc_buffers:
        yield from _buffer(block, buffer, inner, Role.ALLOCATION)
        inner = inner.with_buffer(buffer)
    for match in block.match_buffers:
        yield Visit(block, Role.ACCESS, inner, buffer=match.source.buffer)
        sizes = (*match.buffer.shape, *match.buffer.strides, match.buffer.elem_offset)
        inner = inner.with_variables(*(v for e in sizes for v in free_variables(e))).with_buffer(match.buffer)
    for region in (
        *(block.reads if block.reads is not None else ()),
        *(block.writes if block.writes is not None else ()),
    ):
        yield Visit(block, Role.ACCESS, inner, buffer=region.buffer, at=region.span)
        for side in region.ranges:
            yield from _expr(block, side.start, Role.INDEX, inner)
            yield from _expr(block, side.extent, Role.INDEX, inner)
    if block.init is not None:
        yield _Inside(block.init, inner)
    yield _Inside(block.body, inner)


def _buffer(stmt: Stmt, buffer: Buffer, scope: Scope, role: Role) -> Iterator[Visit]:
    yield Visit(stmt, role, scope, buffer=buffer, at=buffer.span)
    for expr in (*buffer.shape, *buffer.strides, buffer.elem_offset):
        yield Visit(stmt, Role.SHAPE, scope, expr=expr)


def _access(stmt: Stmt, buffer: Buffer, indices: tuple[Expr, ...], scope: Scope, at: Span | None) -> Iterator[Visit]:
    yield Visit(stmt, Role.ACCESS, scope, buffer=buffer, at=at)
    for index in indices:
        yield from _expr(stmt, index, Role.INDEX, scope)


def _expr(stmt: Stmt, expr: Expr, role: Role, scope: Scope) -> Iterator[Visit]:
    """The expression, and its parts with roles of their own: accesses with their indices, conditions of choices."""
    yield Visit(stmt, role, scope, expr=expr)
    stack: list[Node] = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, BufferLoad):
            yield from _access(stmt, node.buffer, node.indices, scope, node.span)
            continue
        if isinstance(node, Select | IfThenElseExpr) and node.condition.dtype.lanes == 1:
            yield Visit(stmt, Role.CONDITION, scope, expr=node.condition)
        stack += [c for c in children(node) if not isinstance(c, Buffer)]
