"""Loop unswitching: conditions and lets moved out of the loops that do not decide them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import ClassVar

from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import TRUE, Compare, Expr, IfThenElseExpr, IntImm, Logical, Not, Select, Var, const
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import (
    NOTHING,
    Allocate,
    Block,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    Let,
    Seq,
    Stmt,
    seq,
)
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import (
    bound_variables,
    children,
    descend,
    free_variables,
    map_children,
    mapped,
    substitute,
    take_fresh,
    walk,
)
from layoutproof.lowering import codes
from layoutproof.lowering.arith.index_simplify import apply_value_rules
from layoutproof.lowering.cleanup.rebuild import Origins, is_total, negated, tidied, truths_of
from layoutproof.lowering.layout.transform_layout import ROOT
from layoutproof.lowering.loops.nest import names_of
from layoutproof.lowering.passes.base import ArgumentKind, Pass, option
from layoutproof.lowering.passes.find import find_block
from layoutproof.lowering.passes.witness_maps import count_stores

_Bound = tuple[Node, Mapping[Var, Expr]]


@dataclass(frozen=True, slots=True)
class Given:
    """Rebuilds statements in which conditions have known truth values; `truths` is about variables from outside of
    them.
    """

    truths: Mapping[Expr, bool]
    origins: Origins

    def statement(self, stmt: Stmt, bound: Mapping[Var, Expr]) -> Stmt:
        """`stmt` with decided conditions; `bound` has the values of block variables. Assumptions stay."""
        result = trampoline(lambda given: self._step(*given), (stmt, bound))
        assert isinstance(result, Stmt)
        return result

    def _step(self, node: Node, bound: Mapping[Var, Expr]) -> Node | Steps[_Bound, Node]:
        match node:
            case Evaluate(value=Assume()):
                return node
            case BufferStore():
                new_store = map_children(node, lambda part: self._below(part, bound))
                return node if new_store is node else self.origins.same(new_store, node)
            case Stmt():
                return self._inside(node, bound)
            case _:
                return self._below(node, bound)

    def _inside(self, stmt: Stmt, bound: Mapping[Var, Expr]) -> Steps[_Bound, Node]:
        inner = bound
        if isinstance(stmt, Block):
            inner = {**bound, **{i.var: substitute(i.binding, bound) for i in stmt.iter_vars}}
        return tidied((yield from mapped(stmt, lambda node: (node, inner))), stmt)

    def _below(self, node: Node, bound: Mapping[Var, Expr]) -> Node:
        return self.expression(node, bound) if isinstance(node, Expr) else node

    def expression(self, expr: Expr, bound: Mapping[Var, Expr]) -> Expr:
        """`expr`, decided."""
        if expr.dtype.is_bool and expr.dtype.lanes == 1 and not isinstance(expr, IntImm):
            truth = self.truths.get(substitute(expr, bound))
            if truth is not None:
                return const(truth)
        new = map_children(expr, lambda node: self._below(node, bound))
        return (
            apply_value_rules(new)
            if new is not expr and isinstance(new, Logical | Not | IfThenElseExpr | Select | Compare)
            else new
        )


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
    """A condition in a loop, with the bindings of blocks put in; `lets` are those inside the loop, `bound` all
    variables that the loop and its body bind.
    """

    condition: Expr
    lets: Mapping[Var, Expr]
    bound: frozenset[Var]
    node: Node

    @property
    def is_free(self) -> bool:
        """Whether the condition is well-defined outside the loop as it is."""
        return self._may_stand_outside(self.condition)

    @property
    def with_lets(self) -> Expr:
        """The condition with the lets' values in the place of their variables."""
        return with_lets(self.condition, self.lets)

    @property
    def is_free_with_lets(self) -> bool:
        """Whether the condition is well-defined outside the loop together with the lets that it needs."""
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
    """The statements between a loop and a node in it."""

    bindings: Mapping[Var, Expr]
    lets: Mapping[Var, Expr]
    bound: frozenset[Var]


def sources(loop: For, flags: AbstractSet[Flag], within: AbstractSet[str] | None) -> Iterator[Source]:
    """The conditions in a loop that flags allow to move, in the order of the text; `within` restricts the blocks."""
    inside = within is None
    yield from _in_statement(loop.body, flags, within, inside, _Around({}, {}, frozenset({loop.var})))


def _in_statement(
    stmt: Stmt, flags: AbstractSet[Flag], within: AbstractSet[str] | None, inside: bool, around: _Around
) -> Iterator[Source]:
    inside = inside or _is_one_of(stmt, within)
    match stmt:
        case For(var=var):
            around = _Around(around.bindings, around.lets, around.bound | {var})
        case IfThenElse(condition=condition) if inside or _holds(stmt, within):
            yield from _of_guard(condition, flags, around, stmt)
        case Let(var=var, value=value):
            around = _Around(
                around.bindings, {**around.lets, var: substitute(value, around.bindings)}, around.bound | {var}
            )
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
        if (
            isinstance(node, Select | IfThenElseExpr)
            and isinstance(node.condition, Var)
            and Flag.BOOLEAN_EXPRESSION in flags
        ):
            yield _source(node.condition, around, stmt)


def _source(condition: Expr, around: _Around, stmt: Stmt) -> Source:
    return Source(substitute(condition, around.bindings), around.lets, around.bound, stmt)


def _is_one_of(node: Node, names: AbstractSet[str] | None) -> bool:
    return names is not None and isinstance(node, Block) and node.name in names


def _holds(stmt: Stmt, names: AbstractSet[str] | None) -> bool:
    return any(_is_one_of(node, names) for node in walk(stmt))


def lets_in(loop: For) -> Iterator[tuple[Let, Expr, frozenset[Var]]]:
    """The lets in a loop with their values over loops, and the variables that the loop and its body bind."""

    def below(
        stmt: Stmt, bindings: Mapping[Var, Expr], bound: frozenset[Var]
    ) -> Iterator[tuple[Let, Expr, frozenset[Var]]]:
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


ALL_BUT_THREADS = tuple(flag.value for flag in Flag if flag is not Flag.USING_BLOCK_VAR)
MAX_GROWTH = 32
"""How many times as many stores as before a hoisting may leave, at most: every condition with two arms copies its loop.
"""


@dataclass(frozen=True)
class HoistExpression(Pass):
    """Move conditions and lets out of the loops that do not change them, in one block or everywhere.

    Of the flags, `if_else_stmt` moves conditions of branches and guards of blocks, `if_else_expr` those of lazy
    choices, `boolean_expression` any boolean part, `required_by_conditional` lets that such a condition needs,
    `let_stmt` all lets; with `using_block_var` also conditions on thread axes. Arithmetic that may trap, and loads,
    stay. The loop of a condition with two arms is written twice, the second time with new block names. `block` names
    the block whose conditions move; `root` is all of the function.
    """

    primitive: ClassVar[str] = "hoist_expression"
    block: str = field(default=ROOT, metadata=option(ArgumentKind.NAME))
    flags: tuple[str, ...] = field(default=ALL_BUT_THREADS, metadata=option(ArgumentKind.NAMES))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with its conditions outside. Raises LayoutproofError for an unknown block or flag, if nothing
        moves only because a let may not, and if the copies would be too many.
        """
        flags = frozenset(map(self._flag, self.flags))
        origins = Origins(func)
        within = None if self.block == ROOT else {find_block(func, self.block).name}
        hoisting = _Hoisting(
            flags, origins, within, thread_variables(func.body), names_of(func), count_stores(func.body)
        )
        body = hoisting.statement(origins.body)
        if body == func.body and hoisting.blocked:
            raise hoisting.refusal()
        return origins.rewrite(body)

    @staticmethod
    def _flag(name: str) -> Flag:
        if name not in set(Flag):
            raise error(
                codes.HOIST_FLAG, f"hoist_expression has no flag {name!r}", help=f"its flags are {', '.join(Flag)}"
            )
        return Flag(name)


@dataclass(slots=True)
class _Hoisting:
    """`within` are the blocks whose conditions move, None for all; `limit` is how many stores there were."""

    flags: frozenset[Flag]
    origins: Origins
    within: set[str] | None
    threads: frozenset[Var]
    taken: set[str]
    limit: int
    copied: int = 0
    blocked: list[tuple[Source, For]] = field(default_factory=list[tuple[Source, For]])

    def statement(self, stmt: Stmt) -> Stmt:
        """`stmt` with what can be decided outside of its loops outside, the outermost loops first."""
        match stmt:
            case For() if stmt.kind is not ForKind.THREAD_BINDING:
                return self.loop(stmt)
            case Seq(body=body):
                return seq(*map(self.statement, body))
            case IfThenElse(condition=condition) if is_total(condition):
                then = self.given(stmt.then, condition, True)
                otherwise = self.given(stmt.otherwise, condition, False) if stmt.otherwise is not None else None
                return tidied(replace(stmt, then=self.statement(then), otherwise=self._maybe(otherwise)), stmt)
            case _:
                return tidied(map_children(stmt, self._below), stmt)

    def _maybe(self, stmt: Stmt | None) -> Stmt | None:
        return None if stmt is None else self.statement(stmt)

    def _below(self, node: Node) -> Node:
        return self.statement(node) if isinstance(node, Stmt) else node

    def loop(self, loop: For) -> Stmt:
        """A loop, in branches on what it does not decide, in lets that it does not change."""
        let = self.movable_let(loop)
        if let is not None:
            chosen, value = let
            return Let(chosen.var, value, self.statement(_taken_out(loop, chosen)))
        condition = self.movable_condition(loop)
        if condition is None:
            return tidied(replace(loop, body=self.statement(loop.body)), loop)
        then, otherwise = self.given(loop, condition, True), self.given(loop, condition, False)
        if NOTHING not in (then, otherwise):
            otherwise = self.renamed(otherwise, then)
            self.copied += count_stores(otherwise)
            if self.copied > MAX_GROWTH * self.limit:
                message = (
                    f"hoisting every condition would write the loops of {self.origins.old.name} more than {MAX_GROWTH} "
                    "times"
                )
                raise error(codes.HOIST_COPIES, message, loop.span, help="name a block, or fewer flags")
        if then == NOTHING:
            return tidied(IfThenElse(negated(condition), self.statement(otherwise)), loop)
        return tidied(IfThenElse(condition, self.statement(then), self.statement(otherwise)), loop)

    def given(self, stmt: Stmt, condition: Expr, holds: bool) -> Stmt:
        """`stmt` under a truth value of a condition that it cannot change."""
        return Given(truths_of(condition, holds), self.origins).statement(stmt, {})

    def movable_condition(self, loop: For) -> Expr | None:
        """The first condition in a loop that can move out of it."""
        if any(
            isinstance(node, Allocate | DeclBuffer) or (isinstance(node, Block) and node.alloc_buffers)
            for node in walk(loop)
        ):
            return None
        for source in sources(loop, self.flags, self.within):
            variables = set(free_variables(source.with_lets))
            if variables & self.threads and Flag.USING_BLOCK_VAR not in self.flags:
                continue
            if source.is_free:
                return source.condition
            if source.is_free_with_lets:
                self.blocked.append((source, loop))
        return None

    def movable_let(self, loop: For) -> tuple[Let, Expr] | None:
        """The first let in a loop that can move out of it under the flags, with its value there."""
        if not self.flags & {Flag.LET_STMT, Flag.REQUIRED_BY_CONDITIONAL}:
            return None
        names = [variable.name for variable in bound_variables(loop)]
        needed = self.needed_lets(loop)
        for let, value, bound in lets_in(loop):
            allowed = Flag.LET_STMT in self.flags or let.var in needed
            if (
                allowed
                and is_total(value)
                and not set(free_variables(value)) & bound
                and names.count(let.var.name) == 1
            ):
                return let, value
        return None

    def needed_lets(self, loop: For) -> set[Var]:
        """The lets in a loop without which conditions cannot be moved out."""
        needed: set[Var] = set()
        for source in sources(loop, self.flags, self.within):
            if source.is_free_with_lets:
                expr = source.condition
                while used := set(free_variables(expr)) & set(source.lets):
                    needed |= used
                    expr = substitute(expr, source.lets)
        return needed

    def renamed(self, stmt: Stmt, beside: Stmt) -> Stmt:
        """A copy of loops, its blocks under names of their own."""
        known = {node.name for node in walk(beside) if isinstance(node, Block)}

        def visit(node: Node) -> Node | Steps[Node, Node]:
            return descend(node, visit, named) if isinstance(node, Stmt) else node

        def named(new: Node) -> Node:
            if isinstance(new, Block) and new.name in known:
                name = take_fresh(new.name, self.taken)
                if self.within is not None and new.name in self.within:
                    self.within.add(name)
                return replace(new, name=name)
            return new

        result = trampoline(visit, stmt)
        assert isinstance(result, Stmt)
        return result

    def refusal(self) -> Exception:
        """Why nothing moved: conditions that hang on lets."""
        source, loop = self.blocked[0]
        let = next(v for v in free_variables(source.condition) if v in source.lets)
        text = expr_text(source.condition, Style.PLAIN)
        message = f"the condition `{text}` depends on {let.name}, which is bound inside loop {loop.var.name}"
        return error(
            codes.LET_INSIDE,
            message,
            source.node.span,
            help=f"with the flag {Flag.REQUIRED_BY_CONDITIONAL} the let comes along",
        )


def _taken_out(loop: For, let: Let) -> For:
    """A loop without one of its lets, whose variable is bound outside now."""

    def visit(node: Node) -> Node | Steps[Node, Node]:
        if node is let:
            node = let.body
        return mapped(node) if isinstance(node, Stmt) else node

    result = trampoline(visit, loop)
    assert isinstance(result, For)
    return result
