"""The simplifier as a pass: branches merged, known values used, expressions rewritten by what loops and guards say.

Each stage is kept if it is proved. Index positions (indices, ranges, bindings) hold index arithmetic, which fits its
type. Elsewhere an integer expression is index arithmetic only if bounds show that every part fits; other values only
see rules that hold as stored, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, ClassVar

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.expr import FALSE, TRUE, Cast, Compare, Expr, IfThenElseExpr, IntImm, Logical, Not, Select
from layoutproof.ir.intrinsics import Assume, OpaqueCall, Undef
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.operators import LogicalOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import (
    NOTHING,
    Allocate,
    AttrStmt,
    Block,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    Let,
    Seq,
    Stmt,
    seq,
)
from layoutproof.ir.visit import free_variables, map_children, mapped, stores_in, walk
from layoutproof.lowering.arith.affine import fold_constants
from layoutproof.lowering.arith.index_simplify import IndexSimplifier, apply_value_rules
from layoutproof.lowering.arith.known_facts import Scope, constants_of, is_index_like, symbol_scope
from layoutproof.lowering.cleanup.forwarding import Contents
from layoutproof.lowering.cleanup.rebuild import Deciding, Here, Origins, is_proved, is_total, negated, tries_for
from layoutproof.lowering.passes.base import Pass
from layoutproof.lowering.passes.effects import data_read, data_written, is_pure


class Relation(Enum):
    """What one condition is to another."""

    SAME = 1
    CONTRARY = 2


@dataclass(slots=True)
class Merging:
    """Merges branches of a body whose stores `origins` knows. `may` is asked about each change, in textual order."""

    func: PrimFunc
    origins: Origins
    may: Callable[[], bool]

    def run(self, body: Stmt) -> Stmt:
        """The body with branches merged."""
        deciding = Deciding(self.func.with_body(body))
        start: tuple[Node, Here] = (body, Here())
        result = trampoline(lambda given: self._step(given[0], given[1], deciding), start)
        assert isinstance(result, Stmt)
        return result

    def _step(self, node: Node, here: Here, deciding: Deciding) -> Node | Steps[tuple[Node, Here], Any]:
        return self._statement(node, here, deciding) if isinstance(node, Stmt) else node

    def _statement(self, stmt: Stmt, here: Here, deciding: Deciding) -> Steps[tuple[Node, Here], Any]:
        match stmt:
            case Seq(body=parts):
                within: list[Stmt] = []
                for part in parts:
                    within.append((yield part, here))
                done = self._sequence(within, here, deciding)
                return (
                    stmt
                    if len(done) == len(parts) and all(a is b for a, b in zip(done, parts, strict=True))
                    else seq(*done)
                )
            case For():
                inner = here.inside(stmt)
            case Let(var=var, value=value):
                inner = here.bound(var, value)
            case Block():
                inner = here.in_block(stmt)
            case IfThenElse(condition=condition, then=then, otherwise=otherwise):
                first = yield then, here.under(condition)
                second = (yield otherwise, here.under(condition, False)) if otherwise is not None else None
                return self._one_arm(
                    stmt if first is then and second is otherwise else replace(stmt, then=first, otherwise=second), here
                )
            case _:
                inner = here
        return (yield from mapped(stmt, lambda node: (node, inner)))

    def _sequence(self, parts: list[Stmt], here: Here, deciding: Deciding) -> list[Stmt]:
        done: list[Stmt] = []
        for part in parts:
            last = done[-1] if done else None
            if isinstance(last, IfThenElse) and isinstance(part, IfThenElse):
                relation = self._relation(last, part, here, deciding)
                if relation is not None and self.may():
                    done[-1] = self._one_arm(_merged(last, part, relation), here)
                    continue
            done.append(part)
        return done

    def _relation(self, first: IfThenElse, second: IfThenElse, here: Here, deciding: Deciding) -> Relation | None:
        """What the second condition is to the first when its turn comes; None if nothing is known."""
        one, two = first.condition, second.condition
        if any(isinstance(n, OpaqueCall | Undef) for c in (one, two) for n in walk(c)):
            return None
        opaque = any(isinstance(node, OpaqueCall) for node in walk(first))
        read = data_read(two)
        if read and (opaque or read & data_written(first) or (data_written(first) and not self.func.noalias)):
            return None
        if one == two:
            return Relation.SAME
        if negated(one) == two or one == negated(two):
            return Relation.CONTRARY
        a, b = here.over_loops(one), here.over_loops(two)
        if not (is_total(a) and is_total(b)):
            return None
        if deciding.never(here, a, Not(b)) and deciding.never(here, Not(a), b):
            return Relation.SAME
        if deciding.never(here, a, b) and deciding.never(here, Not(a), Not(b)):
            return Relation.CONTRARY
        return None

    def _one_arm(self, stmt: IfThenElse, here: Here) -> Stmt:
        if stmt.otherwise is None or stmt.then != stmt.otherwise:
            return stmt
        condition = here.over_loops(stmt.condition)
        if any(isinstance(node, OpaqueCall) for node in walk(condition)) or not self.may():
            return stmt
        said = {dim.var for dim in here.dims} | set(constants_of(self.func))
        says = is_total(condition) and set(free_variables(condition)) <= said
        return self._joined(stmt.then, stmt.otherwise, condition, says)

    def _joined(self, then: Stmt, otherwise: Stmt, condition: Expr, says: bool) -> Stmt:
        """A copy of an arm whose stores compute, if `says`, those of both arms, each under its condition; else
        its own.
        """
        others = iter(stores_in(otherwise))

        def visit(node: Node) -> Node | Steps[Node, Node]:
            if not isinstance(node, BufferStore):
                return mapped(node) if isinstance(node, Stmt) else node
            one, two = self.origins.of(node), self.origins.of(next(others))
            new = replace(node)
            both = (*(o.under(condition) for o in one), *(o.under(negated(condition)) for o in two))
            self.origins.set(new, both if says else one)
            return new

        result = trampoline(visit, then)
        assert isinstance(result, Stmt)
        return result


def _merged(first: IfThenElse, second: IfThenElse, relation: Relation) -> IfThenElse:
    arms: list[Stmt | None] = [second.then, second.otherwise]
    if relation is Relation.CONTRARY:
        arms.reverse()
    then, otherwise = (_after(a, b) for a, b in zip((first.then, first.otherwise), arms, strict=True))
    return replace(first, then=then if then is not None else NOTHING, otherwise=otherwise)


def _after(first: Stmt | None, second: Stmt | None) -> Stmt | None:
    parts = [part for part in (first, second) if part is not None]
    return seq(*parts) if parts else None


MAX_TRIES = 16
"""Changes that are tried one by one, at most, where they cannot all be proved together."""

Simplified = Callable[[PrimFunc, Origins, Stmt, Callable[[], bool]], Stmt]
"""A body with its expressions simplified, of a function and with the origins of its stores; asked about what may not be
provable.
"""


@dataclass(slots=True)
class Choice:
    """Changes in the order in which they turn up, by number: all of them are made, or those in `only`."""

    only: Collection[int] | None = None
    offered: list[int] = field(default_factory=list[int])

    def __call__(self) -> bool:
        """Whether the change that turned up now is made."""
        number = len(self.offered)
        self.offered.append(number)
        return self.only is None or number in self.only


def first_proved(func: PrimFunc, simplified: Simplified) -> Rewrite:
    """The simplified function with all changes that are proved together, or else those proved one by one."""
    everything = Choice()
    rewrite = _rewrite(func, simplified, everything)
    count = len(everything.offered)
    # Rewriting of expressions rests on lemmas and is proposed without a check.
    if count == 0 or is_proved(rewrite):
        return rewrite
    chosen: list[int] = []
    rewrite = _rewrite(func, simplified, Choice(()))
    for number in range(min(count, MAX_TRIES, tries_for(func))) if count > 1 else ():
        tried = _rewrite(func, simplified, Choice((*chosen, number)))
        if is_proved(tried):
            chosen.append(number)
            rewrite = tried
    return rewrite


def _rewrite(func: PrimFunc, simplified: Simplified, choice: Choice) -> Rewrite:
    origins = Origins(func)
    body = simplified(func, origins, origins.body, choice)
    merged = Merging(func, origins, choice).run(body)
    known = Contents(func, origins, choice).run(merged if merged is body else simplified(func, origins, merged, choice))
    return origins.rewrite(known if known is body else simplified(func, origins, known, choice))


@dataclass(frozen=True)
class Simplify(Pass):
    """Rewrite expressions by proved rules.

    Branches that are decided go. Consecutive branches become one if their conditions are equal or contrary at every
    instance; conditions that read what the first body writes stay. A value from an assumption or a store replaces a
    load until something may have written the cell, in another iteration too.
    """

    primitive: ClassVar[str] = "simplify"

    def propose(self, func: PrimFunc) -> Rewrite:
        """The simplified function. What cannot be proved of branches and of known values is left out."""
        return first_proved(func, simplified)


def simplified(func: PrimFunc, origins: Origins, body: Stmt, may: Callable[[], bool]) -> Stmt:
    """A body with its expressions simplified; `origins` then knows the new stores. `may` is asked before using an
    assumption inside.
    """
    return trampoline(_Simplifying(origins, may).statement, (body, symbol_scope(func)))


def simplify_value(expr: Expr, scope: Scope) -> Expr:
    """An expression in a value position: a stored value, a condition, a let."""
    if is_index_like(expr) and _fits(expr, scope):
        return IndexSimplifier(scope).simplify(expr)
    if isinstance(expr, BufferLoad):
        return replace(expr, indices=tuple(IndexSimplifier(scope).simplify(i) for i in expr.indices))
    if isinstance(expr, Logical):
        left = simplify_value(expr.lhs, scope)
        right = simplify_value(expr.rhs, scope.with_condition(left, expr.op is LogicalOp.AND))
        return apply_value_rules(replace(expr, lhs=left, rhs=right))
    if isinstance(expr, IfThenElseExpr | Select):
        condition = simplify_value(expr.condition, scope)
        then = simplify_value(expr.then, _side(expr, expr.then, scope, condition, True))
        otherwise = simplify_value(expr.otherwise, _side(expr, expr.otherwise, scope, condition, False))
        return apply_value_rules(replace(expr, condition=condition, then=then, otherwise=otherwise))
    if isinstance(expr, Assume):
        # The top-level connectives and the identity `A[...] == v` have a meaning of their own; only what is inside them
        # changes.
        return replace(expr, condition=_assumption(expr.condition, scope))
    rebuilt = map_children(expr, lambda child: simplify_value(child, scope) if isinstance(child, Expr) else child)
    return apply_value_rules(fold_constants(rebuilt))


def _side(choice: IfThenElseExpr | Select, side: Expr, scope: Scope, condition: Expr, taken: bool) -> Scope:
    """What is known in one side of a choice. A select evaluates both: loads in either are in bounds under any
    condition.
    """
    if isinstance(choice, Select) and any(isinstance(node, BufferLoad) for node in walk(side)):
        return scope
    return scope.with_condition(condition, taken)


def _assumption(expr: Expr, scope: Scope) -> Expr:
    if isinstance(expr, Logical):
        left = _assumption(expr.lhs, scope)
        right = _assumption(expr.rhs, scope.with_condition(left, expr.op is LogicalOp.AND))
        return replace(expr, lhs=left, rhs=right)
    if isinstance(expr, Not):
        return replace(expr, operand=_assumption(expr.operand, scope))
    if isinstance(expr, Compare) and any(isinstance(n, BufferLoad) for n in walk(expr)):
        return map_children(
            expr, lambda child: simplify_value(child, scope) if isinstance(child, BufferLoad) else child
        )
    return simplify_value(expr, scope)


def _fits(expr: Expr, scope: Scope) -> bool:
    """Whether bounds show that every integer part has a value of its type, so that nothing wraps."""
    if isinstance(expr, Logical):
        return _fits(expr.lhs, scope) and _fits(expr.rhs, scope.with_condition(expr.lhs, expr.op is LogicalOp.AND))
    if isinstance(expr, Select | IfThenElseExpr):
        then, otherwise = scope.with_condition(expr.condition), scope.with_condition(expr.condition, False)
        return _fits(expr.condition, scope) and _fits(expr.then, then) and _fits(expr.otherwise, otherwise)
    if isinstance(expr, Cast) and (
        expr.value.dtype.is_bool or expr.dtype.is_bool or not scope.bounds(expr.value).fits(expr.dtype)
    ):
        return False
    parts = [
        n for n in (getattr(expr, name, None) for name in ("lhs", "rhs", "operand", "value")) if isinstance(n, Expr)
    ]
    return all(_fits(part, scope) for part in parts) and (expr.dtype.is_bool or scope.bounds(expr).fits(expr.dtype))


_Steps = Steps[tuple[Stmt, Scope], Stmt]


@dataclass(slots=True)
class _Simplifying:
    origins: Origins
    may: Callable[[], bool]

    def statement(self, given: tuple[Stmt, Scope]) -> Stmt | _Steps:
        return _STATEMENTS[type(given[0])](self, *given)

    def store(self, stmt: BufferStore, scope: Scope) -> Stmt:
        indices = tuple(IndexSimplifier(scope).simplify(i) for i in stmt.indices)
        return self.origins.same(replace(stmt, indices=indices, value=simplify_value(stmt.value, scope)), stmt)

    def for_(self, stmt: For, scope: Scope) -> _Steps:
        start, extent = IndexSimplifier(scope).simplify(stmt.start), IndexSimplifier(scope).simplify(stmt.extent)
        if isinstance(extent, IntImm) and extent.value <= 0:
            return NOTHING
        body = yield stmt.body, scope.with_range(stmt.var, start, extent)
        return NOTHING if body == NOTHING else replace(stmt, start=start, extent=extent, body=body)

    def branch(self, stmt: IfThenElse, scope: Scope) -> _Steps:
        condition = simplify_value(stmt.condition, scope)
        if condition == FALSE:
            return (yield stmt.otherwise, scope) if stmt.otherwise is not None else NOTHING
        then = yield stmt.then, scope.with_condition(condition)
        if condition == TRUE:
            return then
        otherwise = None
        if stmt.otherwise is not None:
            otherwise = yield stmt.otherwise, scope.with_condition(condition, False)
        if otherwise == NOTHING:
            otherwise = None
        return (
            NOTHING
            if then == NOTHING and otherwise is None
            else replace(stmt, condition=condition, then=then, otherwise=otherwise)
        )

    def let(self, stmt: Let, scope: Scope) -> _Steps:
        value = simplify_value(stmt.value, scope)
        inner = scope.with_value(stmt.var, value) if is_index_like(value) and _fits(value, scope) else scope
        return replace(stmt, value=value, body=(yield stmt.body, inner))

    def sequence(self, stmt: Seq, scope: Scope) -> _Steps:
        parts: list[Stmt] = []
        for part in stmt.body:
            parts.append((yield part, scope))
            if isinstance(part, Evaluate) and isinstance(part.value, Assume):
                # Assumptions about loops and symbols stay true: neither changes before the sequence ends.
                assumed = scope.with_condition(part.value.condition)
                scope = assumed if assumed != scope and self.may() else scope
        return seq(*parts)

    def evaluate(self, stmt: Evaluate, scope: Scope) -> Stmt:
        if isinstance(stmt.value, Assume) and is_pure(stmt.value):
            # Assumptions about loops and symbols stay: under themselves they would simplify to true.
            return stmt
        return replace(stmt, value=simplify_value(stmt.value, scope))

    def inside(self, stmt: Allocate | DeclBuffer | AttrStmt, scope: Scope) -> _Steps:
        return replace(stmt, body=(yield stmt.body, scope))

    def block(self, stmt: Block, scope: Scope) -> _Steps:
        simplify = IndexSimplifier(scope).simplify
        iter_vars = tuple(replace(v, binding=simplify(v.binding)) for v in stmt.iter_vars)
        where = simplify_value(stmt.where, scope)
        inner = scope
        for iter_var in iter_vars:
            inner = inner.with_range(iter_var.var, iter_var.domain.start, iter_var.domain.extent)
        inside = inner.with_condition(where)
        init = (yield stmt.init, inside) if stmt.init is not None else None
        body = yield stmt.body, inside
        changed = replace(stmt, iter_vars=iter_vars, where=where, body=body, init=init)
        return _with_regions(changed, IndexSimplifier(inner).simplify)


def _with_regions(block: Block, simplify: Callable[[Expr], Expr]) -> Block:
    """The block with the indices of its region annotations simplified; buffers in them stay as they are."""

    def visit(node: Node) -> Node:
        if isinstance(node, Buffer):
            return node
        return simplify(node) if isinstance(node, Expr) else map_children(node, visit)

    reads = tuple(map_children(r, visit) for r in block.reads) if block.reads is not None else None
    writes = tuple(map_children(w, visit) for w in block.writes) if block.writes is not None else None
    return replace(block, reads=reads, writes=writes)


_STATEMENTS: Mapping[type[Stmt], Callable[[_Simplifying, Any, Scope], Stmt | _Steps]] = {
    BufferStore: _Simplifying.store,
    For: _Simplifying.for_,
    IfThenElse: _Simplifying.branch,
    Let: _Simplifying.let,
    Seq: _Simplifying.sequence,
    Evaluate: _Simplifying.evaluate,
    Allocate: _Simplifying.inside,
    DeclBuffer: _Simplifying.inside,
    AttrStmt: _Simplifying.inside,
    Block: _Simplifying.block,
}

SIMPLIFIED_TYPES = frozenset(_STATEMENTS)
