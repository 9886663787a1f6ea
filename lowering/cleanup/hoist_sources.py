"""What in a loop could be moved out of it: conditions, where they stand, and lets, in the order of the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum

from layoutproof.ir.expr import TRUE, Compare, Expr, IfThenElseExpr, Logical, Not, Select, Var
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.node import Node
from layoutproof.ir.stmt import Block, For, ForKind, IfThenElse, Let, Stmt
from layoutproof.ir.visit import children, free_variables, substitute, walk
from layoutproof.lowering.cleanup.conditions import is_total


class Flag(StrEnum):
    """What may be hoisted (the roadmap's flags of HoistExpression; a let is always a statement here)."""

    IF_ELSE_STMT = "if_else_stmt"
    IF_ELSE_EXPR = "if_else_expr"
    BOOLEAN_EXPRESSION = "boolean_expression"
    USING_BLOCK_VAR = "using_block_var"
    REQUIRED_BY_CONDITIONAL = "required_by_conditional"
    LET_STMT = "let_stmt"


@dataclass(frozen=True, slots=True)
class Source:
    """A condition in a loop. `condition` has the bindings of blocks put in; `lets` are those inside the loop, `bound` all that the
    loop and what is in it bind.
    """

    condition: Expr
    lets: Mapping[Var, Expr]
    bound: frozenset[Var]
    node: Node

    @property
    def is_free(self) -> bool:
        """Whether the condition can stand outside the loop as it is."""
        return self._may_stand_outside(self.condition)

    @property
    def with_lets(self) -> Expr:
        """The condition with the lets' values in the place of their variables."""
        return with_lets(self.condition, self.lets)

    @property
    def is_free_with_lets(self) -> bool:
        """Whether the condition could stand outside if the lets that it needs came along."""
        return self._may_stand_outside(self.with_lets)

    def _may_stand_outside(self, condition: Expr) -> bool:
        variables = set(free_variables(condition))
        return bool(variables) and not variables & self.bound and is_total(condition)


def with_lets(expr: Expr, lets: Mapping[Var, Expr]) -> Expr:
    """An expression with the values of lets in the place of their variables, down to the last."""
    while set(free_variables(expr)) & set(lets):
        expr = substitute(expr, lets)
    return expr


@dataclass(frozen=True, slots=True)
class _Around:
    """What is between a loop and a node in it."""

    bindings: Mapping[Var, Expr]
    lets: Mapping[Var, Expr]
    bound: frozenset[Var]


def sources(loop: For, flags: AbstractSet[Flag], within: AbstractSet[str] | None) -> Iterator[Source]:
    """The conditions in a loop that flags allow to move, in the order of the text; only those of the blocks `within`, if given."""
    inside = within is None
    yield from _in_statement(loop.body, flags, within, inside, _Around({}, {}, frozenset({loop.var})))


def _in_statement(stmt: Stmt, flags: AbstractSet[Flag], within: AbstractSet[str] | None, inside: bool, around: _Around) -> Iterator[Source]:
    inside = inside or _is_one_of(stmt, within)
    match stmt:
        case For(var=var):
            around = _Around(around.bindings, around.lets, around.bound | {var})
        case IfThenElse(condition=condition) if inside or _holds(stmt, within):
            yield from _of_guard(condition, flags, around, stmt)
        case Let(var=var, value=value):
            around = _Around(around.bindings, {**around.lets, var: substitute(value, around.bindings)}, around.bound | {var})
        case Block(iter_vars=iter_vars, where=where):
            values = {i.var: substitute(i.binding, around.bindings) for i in iter_vars}
            around = _Around({**around.bindings, **values}, around.lets, around.bound)
            if inside and where != TRUE:
                yield from _of_guard(where, flags, around, stmt)
        case _:
            pass
    for child in children(stmt):
        if isinstance(child, Stmt):
            yield from _in_statement(child, flags, within, inside, around)
        elif isinstance(child, Expr) and inside and not isinstance(stmt, Let):
            yield from _in_expression(child, flags, around, stmt)


def _of_guard(condition: Expr, flags: AbstractSet[Flag], around: _Around, stmt: Stmt) -> Iterator[Source]:
    if Flag.IF_ELSE_STMT in flags:
        yield _source(condition, around, stmt)


def _in_expression(expr: Expr, flags: AbstractSet[Flag], around: _Around, stmt: Stmt) -> Iterator[Source]:
    for node in () if isinstance(expr, Assume) else walk(expr):
        if isinstance(node, IfThenElseExpr) and Flag.IF_ELSE_EXPR in flags:
            yield _source(node.condition, around, stmt)
        if isinstance(node, Compare | Logical | Not) and node.dtype.is_bool and Flag.BOOLEAN_EXPRESSION in flags:
            yield _source(node, around, stmt)
        if isinstance(node, Select | IfThenElseExpr) and isinstance(node.condition, Var) and Flag.BOOLEAN_EXPRESSION in flags:
            yield _source(node.condition, around, stmt)


def _source(condition: Expr, around: _Around, stmt: Stmt) -> Source:
    return Source(substitute(condition, around.bindings), around.lets, around.bound, stmt)


def _is_one_of(node: Node, names: AbstractSet[str] | None) -> bool:
    return names is not None and isinstance(node, Block) and node.name in names


def _holds(stmt: Stmt, names: AbstractSet[str] | None) -> bool:
    return any(_is_one_of(node, names) for node in walk(stmt))


def lets_in(loop: For) -> Iterator[tuple[Let, Expr, frozenset[Var]]]:
    """The lets in a loop with their values over loops, and the variables that the loop and what is around them in it bind."""

    def below(stmt: Stmt, bindings: Mapping[Var, Expr], bound: frozenset[Var]) -> Iterator[tuple[Let, Expr, frozenset[Var]]]:
        match stmt:
            case For(var=var):
                bound = bound | {var}
            case Let(var=var, value=value):
                yield stmt, substitute(value, bindings), bound
                bound = bound | {var}
            case Block(iter_vars=iter_vars):
                bindings = {**bindings, **{i.var: substitute(i.binding, bindings) for i in iter_vars}}
            case _:
                pass
        for child in children(stmt):
            if isinstance(child, Stmt):
                yield from below(child, bindings, bound)

    yield from below(loop.body, {}, frozenset({loop.var}))


def thread_variables(stmt: Stmt) -> frozenset[Var]:
    """The variables of loops that run on hardware threads."""
    return frozenset(node.var for node in walk(stmt) if isinstance(node, For) and node.kind is ForKind.THREAD_BINDING)
