"""Blocks to loops: iteration variables become their bindings, guards become branches, inits find their place (`inits.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import TRUE, Expr, IntImm, Logical, LogicalOp, Not, Var, logical_and
from layoutproof.ir.primfunc import APART, PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import (
    Allocate,
    AttrStmt,
    Block,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    IterKind,
    IterVar,
    Let,
    Seq,
    Stmt,
    seq,
)
from layoutproof.ir.subst import names_in, substitute
from layoutproof.ir.visit import walk
from layoutproof.lowering import codes
from layoutproof.lowering.inits import InitPlan, Placement, data_read, data_written, is_available, plan_init, uses_buffer
from layoutproof.lowering.known import Scope
from layoutproof.lowering.passes import Pass
from layoutproof.lowering.scopes import symbol_scope
from layoutproof.lowering.witness import rewrite_of


@dataclass(frozen=True)
class LowerBlocks(Pass):
    """Replace every block by guards, allocations and its init among the loops (seed `buffer-physical-layout`: the lowering passes)."""

    primitive: ClassVar[str] = "lower_blocks"

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function without blocks.

        Where an init moves past statements that could touch its cells through an overlapping parameter, the function gets the
        attribute `layoutproof.apart`: calls whose parameters overlap are refused.

        Raises LayoutproofError for an init that has no place among the loops, and for a matched sub-region.
        """
        # Without `noalias` parameters may overlap: what one of them is written, any other may read.
        overlapping = frozenset() if func.noalias else frozenset(buffer.data for buffer in func.buffers)
        lowering = _Lowering(symbol_scope(func), symbol_scope(func), overlapping)
        result = lowering.statement(func.body)
        attrs = func.attrs.with_value(APART, True) if lowering.needs_apart else func.attrs
        return rewrite_of(func, replace(func, body=result.statement, attrs=attrs), result.origins)


@dataclass(slots=True)
class _Pending:
    """An init on its way up to its reduction's outermost loop."""

    plan: InitPlan
    statement: Stmt
    origins: list[int]


@dataclass(slots=True)
class _Lowered:
    """A lowered statement, the old numbers of its stores in order, and the inits that belong further up."""

    statement: Stmt
    origins: list[int] = field(default_factory=list)
    pending: list[_Pending] = field(default_factory=list)

    def around(self, wrap: Callable[[Stmt], Stmt], wrap_init: Callable[[_Pending], Stmt] | None = None) -> _Lowered:
        """The statement wrapped; inits on their way up are wrapped by `wrap_init`, or stay as they are."""
        for pending in self.pending:
            pending.statement = wrap_init(pending) if wrap_init is not None else pending.statement
        return _Lowered(wrap(self.statement), self.origins, self.pending)

    def under(self, condition: Expr) -> _Lowered:
        """The same, with inits on their way up under a condition where it can be told there; else it guards updates only."""

        def guard(pending: _Pending) -> Stmt:
            told = is_available(pending.plan.left_out, condition)
            return IfThenElse(condition, pending.statement) if told else pending.statement

        return self.around(lambda s: s, guard)


@dataclass(slots=True)
class _Lowering:
    """`scope` is what loops and branches say here, `ranges` what loops alone say: a hoisted init leaves branches behind."""

    scope: Scope
    ranges: Scope
    overlapping: frozenset[Var]
    values: dict[Var, Expr] = field(default_factory=dict)
    path: list[Stmt] = field(default_factory=list)
    stores: int = 0
    needs_apart: bool = False

    def statement(self, stmt: Stmt) -> _Lowered:
        """`stmt` without blocks."""
        return _LOWER[type(stmt)](self, stmt)

    def expr(self, expr: Expr) -> Expr:
        return substitute(expr, self.values)

    def below(self, parent: Stmt, stmt: Stmt, scope: Scope | None = None) -> _Lowered:
        """`stmt`, which stands in `parent`, where `scope` holds."""
        outer = self.scope
        self.scope = scope if scope is not None else outer
        self.path.append(parent)
        result = self.statement(stmt)
        self.path.pop()
        self.scope = outer
        return result

    def for_(self, stmt: For) -> _Lowered:
        start, extent = self.expr(stmt.start), self.expr(stmt.extent)
        outer = self.ranges
        self.ranges = outer.with_range(stmt.var, start, extent)
        inner = self.below(stmt, stmt.body, self.scope.with_range(stmt.var, start, extent))
        self.ranges = outer
        loop = replace(stmt, start=start, extent=extent, body=inner.statement)
        arrived = [p for p in inner.pending if p.plan.loop is stmt]
        rising = [p for p in inner.pending if p.plan.loop is not stmt]
        for pending in inner.pending:
            if stmt.var.name in pending.plan.spatial:
                pending.statement = replace(loop, body=pending.statement)
        origins = [n for p in arrived for n in p.origins] + inner.origins
        return _Lowered(seq(*(p.statement for p in arrived), loop), origins, rising)

    def sequence(self, stmt: Seq) -> _Lowered:
        parts = [self.below(stmt, child) for child in stmt.body]
        return _Lowered(seq(*(p.statement for p in parts)), [n for p in parts for n in p.origins], [q for p in parts for q in p.pending])

    def branch(self, stmt: IfThenElse) -> _Lowered:
        condition = self.expr(stmt.condition)
        then = self.below(stmt, stmt.then, self.scope.with_condition(condition))
        then = then.under(condition)
        if stmt.otherwise is None:
            return then.around(lambda s: replace(stmt, condition=condition, then=s))
        other = self.below(stmt, stmt.otherwise, self.scope.with_condition(condition, False))
        other = other.under(Not(condition))
        both = replace(stmt, condition=condition, then=then.statement, otherwise=other.statement)
        return _Lowered(both, then.origins + other.origins, then.pending + other.pending)

    def let(self, stmt: Let) -> _Lowered:
        value = self.expr(stmt.value)

        def init(pending: _Pending) -> Stmt:
            used = any(node == stmt.var for node in walk(pending.statement))
            return replace(stmt, value=value, body=pending.statement) if used else pending.statement

        return self.below(stmt, stmt.body).around(lambda s: replace(stmt, value=value, body=s), init)

    def allocate(self, stmt: Allocate) -> _Lowered:
        buffer = substitute(stmt.buffer, self.values)
        return self.below(stmt, stmt.body).around(lambda s: replace(stmt, buffer=buffer, body=s))

    def declare(self, stmt: DeclBuffer) -> _Lowered:
        buffer = substitute(stmt.buffer, self.values)

        def init(pending: _Pending) -> Stmt:
            used = uses_buffer(pending.statement, buffer)
            return replace(stmt, buffer=buffer, body=pending.statement) if used else pending.statement

        return self.below(stmt, stmt.body).around(lambda s: replace(stmt, buffer=buffer, body=s), init)

    def attribute(self, stmt: AttrStmt) -> _Lowered:
        value = self.expr(stmt.value)
        return self.below(stmt, stmt.body).around(lambda s: replace(stmt, value=value, body=s))

    def store(self, stmt: BufferStore) -> _Lowered:
        number = self.stores
        self.stores += 1
        return _Lowered(substitute(stmt, self.values), [number])

    def evaluate(self, stmt: Evaluate) -> _Lowered:
        return _Lowered(substitute(stmt, self.values))

    def block(self, stmt: Block) -> _Lowered:
        if stmt.match_buffers:
            name = stmt.match_buffers[0].buffer.name
            raise error(
                codes.MATCHED_REGION,
                f"block {stmt.name} matches {name} with a region of another buffer; such blocks cannot be lowered",
                stmt.span,
            )
        for iter_var in stmt.iter_vars:
            changed = data_read(iter_var.binding) & data_written(stmt)
            if changed:
                message = f"{iter_var.var.name} of block {stmt.name} is bound to a value of {min(v.name for v in changed)}, which it writes"
                raise error(codes.BINDING_CHANGES, message, stmt.span)
        outer = dict(self.values)
        for iter_var in stmt.iter_vars:
            self.values[iter_var.var] = substitute(iter_var.binding, outer)
        where = self.expr(stmt.where)
        body = self.below(stmt, stmt.body, self.scope.with_condition(where))
        if where != TRUE:
            body = body.under(where).around(lambda s: IfThenElse(where, s, span=stmt.span))
        if stmt.init is not None:
            body = self.with_init(stmt, stmt.init, body)
        buffers = [substitute(buffer, self.values) for buffer in stmt.alloc_buffers]
        self.values = outer
        return body.around(lambda s: _allocated(buffers, s))

    def with_init(self, block: Block, init: Stmt, body: _Lowered) -> _Lowered:
        holds = partial(self.holds_inside, block)
        plan = plan_init(self.path, block, self.values, holds, self.overlapping)
        self.needs_apart = self.needs_apart or plan.needs_apart
        if plan.placement is Placement.NOWHERE:
            raise error(codes.INIT_PLACE, f"the init of block {block.name} cannot be placed among its loops: {plan.reason}", block.span)
        lowered = self.below(block, init)
        known = self.ranges if plan.placement is Placement.HOISTED else self.scope
        guards = [g for v in block.iter_vars if v.kind is not IterKind.REDUCE for g in self.domain_guards(v, known)]
        guarded = lowered.statement if not guards else IfThenElse(logical_and(*guards), lowered.statement)
        if plan.placement is Placement.HOISTED:
            missing = sorted(plan.left_out & names_in(guarded))
            if missing:
                reason = f"it needs {missing[0]}, which changes in the course of the reduction"
                message = f"the init of block {block.name} cannot be placed among its loops: {reason}"
                raise error(codes.INIT_PLACE, message, block.span)
            return _Lowered(body.statement, body.origins, [*body.pending, _Pending(plan, guarded, lowered.origins)])
        first = guarded if plan.first == TRUE else IfThenElse(self.expr(plan.first), guarded)
        return _Lowered(seq(first, body.statement), lowered.origins + body.origins, body.pending)

    def holds_inside(self, block: Block, condition: Expr, loops: Mapping[Var, Expr]) -> bool:
        """Whether a condition certainly holds where the loops have the values given and spatial variables lie in their domains."""
        scope = self.scope
        for v in block.iter_vars:
            if v.kind is not IterKind.REDUCE:
                for guard in self.domain_guards(v, Scope()):
                    scope = scope.with_condition(guard)
        return all(part == TRUE or scope.proves(part) for part in _parts(substitute(self.expr(condition), loops)))

    def domain_guards(self, iter_var: IterVar, known: Scope) -> list[Expr]:
        """What is not plain about a bound value lying in its variable's domain: init runs only where it does."""
        value, start, extent = self.values[iter_var.var], self.expr(iter_var.domain.start), self.expr(iter_var.domain.extent)
        end = extent if isinstance(start, IntImm) and start.value == 0 else start + extent
        return [c for c in (start <= value, value < end) if not known.proves(c)]


def _parts(condition: Expr) -> list[Expr]:
    """The conjuncts of a condition."""
    if isinstance(condition, Logical) and condition.op is LogicalOp.AND:
        return [*_parts(condition.lhs), *_parts(condition.rhs)]
    return [condition]


def _allocated(buffers: list[Buffer], body: Stmt) -> Stmt:
    for buffer in reversed(buffers):
        body = Allocate(buffer, body)
    return body


_LOWER: Mapping[type[Stmt], Callable[[_Lowering, Any], _Lowered]] = {
    For: _Lowering.for_,
    Seq: _Lowering.sequence,
    IfThenElse: _Lowering.branch,
    Let: _Lowering.let,
    Allocate: _Lowering.allocate,
    DeclBuffer: _Lowering.declare,
    AttrStmt: _Lowering.attribute,
    BufferStore: _Lowering.store,
    Evaluate: _Lowering.evaluate,
    Block: _Lowering.block,
}

LOWERED_TYPES = frozenset(_LOWER)
