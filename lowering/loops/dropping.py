"""Taking guards out of a program: what stays, which of its instances are the old ones, and which domains grow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from layoutproof.ir.expr import Expr, IfThenElseExpr, Not, Var, logical_and
from layoutproof.ir.node import Node
from layoutproof.ir.stmt import Block, BufferStore, For, IfThenElse, Let, Seq, Stmt, seq
from layoutproof.ir.visit import map_children, stores_in, substitute
from layoutproof.lowering.effects import is_pure
from layoutproof.lowering.known import Scope
from layoutproof.lowering.loops.domains import grown
from layoutproof.lowering.loops.guards import parts_of
from layoutproof.lowering.loops.nest import under
from layoutproof.lowering.loops.sites import GuardSite


@dataclass(frozen=True, slots=True)
class Origin:
    """That a new store computes the old store `number` where all `conditions` over loops hold."""

    number: int
    conditions: tuple[Expr, ...]


@dataclass(slots=True)
class Dropping:
    """Rebuilds a body without the guards of `sites`; of those in `otherwise` the alternative stays, of others what they guard.

    `origins` has, for each store of the result in order, what it computes: one store, or one of either arm of a branch that is gone.
    """

    sites: Sequence[GuardSite]
    otherwise: Sequence[GuardSite]
    scope: Scope
    origins: list[list[Origin]] = field(default_factory=list)
    stores: int = 0
    values: dict[Var, Expr] = field(default_factory=dict)
    dropped: list[Expr] = field(default_factory=list)
    kept: list[Expr] = field(default_factory=list)

    def statement(self, stmt: Stmt) -> Stmt:
        """`stmt` without the guards."""
        match stmt:
            case BufferStore():
                self.origins.append([Origin(self.stores, self.told(self.dropped))])
                self.stores += 1
                return replace(stmt, value=self.value(stmt.value))
            case IfThenElse():
                return self.branch(stmt)
            case Block():
                return self.block(stmt)
            case Seq(body=body):
                return seq(*(self.statement(part) for part in body))
            case For(var=var, start=start, extent=extent):
                outer = self.scope
                self.scope = outer.with_range(var, start, extent)
                result = replace(stmt, body=self.statement(stmt.body))
                self.scope = outer
                return result
            case Let(var=var, value=value) if is_pure(value):
                known = self.values
                self.values = {**known, var: substitute(value, known)}
                bound = replace(stmt, body=self.statement(stmt.body))
                self.values = known
                return bound
            case _:
                return map_children(stmt, self.below)

    def below(self, node: Node) -> Node:
        return self.statement(node) if isinstance(node, Stmt) else node

    def value(self, value: Expr) -> Expr:
        """A stored value without the choices that go away."""

        def visit(node: Node) -> Node:
            if isinstance(node, IfThenElseExpr) and self.of(node):
                chosen = node.otherwise if self.of(node, self.otherwise) else node.then
                return visit(chosen)
            return map_children(node, visit)

        result = visit(value)
        assert isinstance(result, Expr)
        return result

    def of(self, node: Node, sites: Sequence[GuardSite] | None = None) -> set[int]:
        """The conjuncts of a node's guard that go away."""
        return {site.part for site in (self.sites if sites is None else sites) if site.node is node}

    def branch(self, stmt: IfThenElse) -> Stmt:
        gone = self.of(stmt)
        if stmt.otherwise is not None:
            return self.choice(stmt, stmt.otherwise, bool(gone))
        parts = parts_of(stmt.condition)
        left = [part for n, part in enumerate(parts) if n not in gone]
        then = self.inside(stmt.then, [part for n, part in enumerate(parts) if n in gone], left)
        if not gone:
            return replace(stmt, then=then)
        return under(left, then)

    def choice(self, stmt: IfThenElse, otherwise: Stmt, gone: bool) -> Stmt:
        """A branch with an alternative: one arm may be all that stays."""
        if not gone:
            then = self.inside(stmt.then, [], [stmt.condition])
            return replace(stmt, then=then, otherwise=self.inside(otherwise, [], [Not(stmt.condition)]))
        first = len(list(stores_in(stmt.then)))
        second = len(list(stores_in(otherwise)))
        begin = self.stores
        if self.of(stmt, self.otherwise):
            self.stores = begin + first
            result = self.kept_arm(otherwise, Not(stmt.condition), stmt.condition, begin if first == second else None)
        else:
            result = self.kept_arm(stmt.then, stmt.condition, Not(stmt.condition), begin + first if first == second else None)
        self.stores = begin + first + second
        return result

    def kept_arm(self, arm: Stmt, condition: Expr, contrary: Expr, other: int | None) -> Stmt:
        """The arm that stays; where the contrary holds, its stores compute those of the other arm, which start at number `other`."""
        position, number = len(self.origins), self.stores
        result = self.inside(arm, [condition], [])
        if other is not None and is_pure(condition):
            outer = self.told([*self.dropped, contrary])
            for origins in self.origins[position:]:
                origins.append(Origin(other + origins[0].number - number, outer))
        return result

    def inside(self, stmt: Stmt, dropped: Sequence[Expr], kept: Sequence[Expr]) -> Stmt:
        """`stmt` where conditions were dropped, and others still hold."""
        scope, gone, held = self.scope, len(self.dropped), len(self.kept)
        self.dropped += dropped
        self.kept += kept
        for condition in kept:
            self.scope = self.scope.with_condition(condition)
        result = self.statement(stmt)
        del self.dropped[gone:], self.kept[held:]
        self.scope = scope
        return result

    def block(self, block: Block) -> Block:
        gone = self.of(block)
        parts = parts_of(block.where)
        dropped = [part for n, part in enumerate(parts) if n in gone]
        left = [part for n, part in enumerate(parts) if n not in gone]
        outer_values, outer_scope = dict(self.values), self.scope
        for iter_var in block.iter_vars:
            self.values[iter_var.var] = substitute(iter_var.binding, outer_values)
            self.scope = self.scope.with_value(iter_var.var, iter_var.binding)
        all_dropped, all_kept = [*self.dropped, *dropped], [*self.kept, *left]
        iter_vars = tuple(grown(i, outer_scope, all_dropped, all_kept) for i in block.iter_vars)
        init = self.inside(block.init, dropped, left) if block.init is not None else None
        body = self.inside(block.body, dropped, left)
        self.values, self.scope = outer_values, outer_scope
        where = logical_and(*left) if gone else block.where
        return replace(block, iter_vars=iter_vars, body=body, init=init, where=where)

    def told(self, conditions: Sequence[Expr]) -> tuple[Expr, ...]:
        """The conditions over loops; what depends on data is part of a value, not of which instances there are."""
        return tuple(dict.fromkeys(substitute(c, self.values) for c in conditions if is_pure(c)))
