"""Removing guards by computing more: additional iterations without observable effect, for a loop without branches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from typing import Any, ClassVar

from layoutproof.ir.buffer import BufferLoad, Range
from layoutproof.ir.diagnostic import counted, error
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Expr, IfThenElseExpr, Not, Var, logical_and, widen
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.stmt import Block, BufferStore, For, IfThenElse, IterVar, Let, Seq, Stmt, seq
from layoutproof.ir.visit import free_variables, loops_of_stores, map_children, mapped, stores_in, substitute
from layoutproof.lowering import codes
from layoutproof.lowering.arith.affine import Affine, affine_of, expression_of
from layoutproof.lowering.arith.known_facts import Scope, conjuncts, symbol_scope
from layoutproof.lowering.loops.nest import GuardKind, GuardSite, end_over_loops, guard_sites, parts_of, under
from layoutproof.lowering.passes.base import ArgumentKind, Pass, option
from layoutproof.lowering.passes.effects import is_pure
from layoutproof.lowering.passes.in_part import try_in_part
from layoutproof.verify.faults.bounds import find_outside
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.program.instances import AccessKind


def grown(iter_var: IterVar, scope: Scope, dropped: Sequence[Expr], kept: Sequence[Expr]) -> IterVar:
    """The iteration variable with a domain that contains all its values, if it needs another one and one is found.

    `kept` are the conditions that still hold where the block runs. A domain that no dropped condition is about stays.
    """
    spoken_of = {v for condition in dropped for v in free_variables(condition)}
    if not spoken_of & {*free_variables(iter_var.binding), iter_var.var}:
        return iter_var
    domain, dtype = iter_var.domain, iter_var.domain.start.dtype
    value, start = affine_of(iter_var.binding), affine_of(domain.start)
    end = start + affine_of(domain.extent)
    known = [part for condition in kept for part in conjuncts(condition)]
    low = start if _holds(value - start, scope, known) else end_over_loops(value, scope, highest=False)
    last = (
        end + Affine({}, -1)
        if _holds(end + Affine({}, -1) - value, scope, known)
        else end_over_loops(value, scope, highest=True)
    )
    if low is None or last is None:
        return iter_var
    extent = last - low + Affine({}, 1)
    if low == start and extent == affine_of(domain.extent):
        return iter_var
    if not (_is_sayable(low, dtype) and _is_sayable(extent, dtype)):
        return iter_var
    return replace(iter_var, domain=Range(expression_of(low, dtype), expression_of(extent, dtype)))


def _is_sayable(part: Affine, dtype: DType) -> bool:
    """Whether every number in it fits its type; the ends of a fused symbolic loop may not."""
    return all(abs(number) <= dtype.max_int for number in (part.constant, *part.terms.values()))


def _holds(part: Affine, scope: Scope, known: Sequence[Affine]) -> bool:
    """Whether `part >= 0`, by loops or by a condition."""
    if scope.is_nonnegative(part):
        return True
    rests = (part - each for each in known)
    return any(rest.is_constant and rest.constant >= 0 for rest in rests)


@dataclass(frozen=True, slots=True)
class Origin:
    """That a new store computes the old store `number` where all `conditions` over loops hold."""

    number: int
    conditions: tuple[Expr, ...]


@dataclass(slots=True)
class Dropping:
    """Rebuilds a body without the guards of `sites`; of those in `otherwise` the alternative stays, of others the
    guarded part.

    `origins` has, for each store of the result in order, the old stores that it computes: one, or one of either arm of
    a removed branch.
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
            result = self.kept_arm(
                stmt.then, stmt.condition, Not(stmt.condition), begin + first if first == second else None
            )
        self.stores = begin + first + second
        return result

    def kept_arm(self, arm: Stmt, condition: Expr, contrary: Expr, other: int | None) -> Stmt:
        """The arm that stays; under the contrary condition its stores compute those of the other arm, from number
        `other`.
        """
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
        """The conditions over loops; conditions on data are part of a value, not of the iteration domain."""
        return tuple(dict.fromkeys(substitute(c, self.values) for c in conditions if is_pure(c)))


def wrap_indices(func: PrimFunc) -> PrimFunc:
    """The function with every index that is not known to be in bounds taken modulo its extent.

    A wrapped store hits a cell with an element; that it stores the value already there is for the checker to prove.
    """
    loose = _loose_axes(func)

    def visit(node: Node) -> Node | Steps[Node, Node]:
        return mapped(node) if isinstance(node, Stmt) and not isinstance(node, BufferStore) else inside(node)

    def inside(node: Node) -> Node:
        if isinstance(node, BufferLoad | BufferStore) and id(node) in loose:
            axes = loose[id(node)]
            indices = tuple(map(_expr, map(inside, node.indices)))
            wrapped = tuple(_wrapped(i, node, a) if a in axes else i for a, i in enumerate(indices))
            if isinstance(node, BufferLoad):
                return replace(node, indices=wrapped)
            return replace(node, indices=wrapped, value=_expr(inside(node.value)))
        return map_children(node, inside) if isinstance(node, Stmt | Expr) else node

    body = trampoline(visit, func.body)
    assert isinstance(body, Stmt)
    return func.with_body(body)


def _wrapped(index: Expr, access: BufferLoad | BufferStore, axis: int) -> Expr:
    return index % widen(access.buffer.shape[axis], index.dtype)


def _expr(node: Node) -> Expr:
    assert isinstance(node, Expr)
    return node


def _loose_axes(func: PrimFunc) -> dict[int, set[int]]:
    """The axes of loads and stores, by identity, along which they may leave their buffers."""
    facts = Facts.of(func)
    found: dict[int, set[int]] = {}
    for access in facts.program.accesses:
        wanted = AccessKind.WRITE if isinstance(access.node, BufferStore) else AccessKind.READ
        if access.kind is not wanted:
            continue
        for axis, (index, extent) in enumerate(zip(access.indices, access.buffer.shape, strict=True)):
            if not find_outside(facts, access.domain, index, extent).is_empty:
                found.setdefault(id(access.node), set()).add(axis)
    return found


MAX_CANDIDATES = 16
"""Sets of guards that are tried, at most, when none are named."""


@dataclass(frozen=True)
class RemoveBranchingThroughOvercompute(Pass):
    """Drop guards of a block whose additional iterations are invisible; the step's text and the trace say which.

    Guards are numbered from the outside to the inside: conjuncts of enclosing branches, of the block's own guard, of
    branches inside it, and choices in values. `k` keeps what guard `k` guards, `-1 - k` the alternative of a branch or
    a choice. None tries all of them, then fewer, and keeps the largest set that is proved; in a trace, null is all
    those around the block and its own, or if there are none, all. Domains of block variables grow with the additional
    iterations. With `wrap` accesses that would leave their buffer take their index modulo its extent; a refusal says so
    if that would be proved.
    """

    primitive: ClassVar[str] = "remove_branching_through_overcompute"
    drops_branches: ClassVar[bool] = True
    block: str = field(metadata=option(ArgumentKind.NAME))
    guards: tuple[int, ...] | None = field(default=None, metadata=option(ArgumentKind.CHOICES))
    wrap: bool = field(default=False, metadata=option(ArgumentKind.FLAG))

    @classmethod
    def tries(cls, func: PrimFunc, arguments: dict[str, Any]) -> Sequence[Pass]:
        """The pass with these guards; without any, all that may be dropped, much before little."""
        given = cls.from_arguments(arguments)
        return (given,) if given.guards is not None else candidates(func, given.block, given.wrap)

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function without the guards. Raises LayoutproofError for a block without guards, and for an unknown
        number.
        """
        sites = guard_sites(func, self.block)
        if not sites:
            raise error(
                codes.NO_GUARD,
                f"block {self.block} has no guard: nothing in it or around it depends on a condition",
                func.span,
            )
        chosen = self.guards if self.guards is not None else default_guards(sites)
        numbers = [_number(self.block, sites, choice) for choice in chosen]
        dropping = Dropping(
            [sites[n] for n in numbers],
            [sites[n] for n, choice in zip(numbers, chosen, strict=True) if choice < 0],
            symbol_scope(func),
        )
        new = func.with_body(dropping.statement(func.body))
        if self.wrap:
            new = wrap_indices(new)
        return Rewrite(func, new, Witness(tuple(_instances(func, new, dropping.origins))))


def default_guards(sites: Sequence[GuardSite]) -> tuple[int, ...]:
    """The guards around a block and its own; all if there are none."""
    plain = tuple(
        n for n, s in enumerate(sites) if s.kind in (GuardKind.AROUND, GuardKind.BLOCK) and not s.has_alternative
    )
    return plain if plain else tuple(range(len(sites)))


def candidates(func: PrimFunc, block: str, wrap: bool = False) -> tuple[RemoveBranchingThroughOvercompute, ...]:
    """What may be dropped, much before little: the first is the default. Raises LayoutproofError as `propose` does."""
    sites = guard_sites(func, block)
    first = RemoveBranchingThroughOvercompute(block, None, wrap)
    if try_in_part(first, func) is None:
        first.propose(func)
    default = default_guards(sites)
    others = (RemoveBranchingThroughOvercompute(block, g, wrap) for g in _subsets(sites) if g != default)
    return (RemoveBranchingThroughOvercompute(block, default, wrap), *islice(others, MAX_CANDIDATES - 1))


def _subsets(sites: Sequence[GuardSite]) -> Iterator[tuple[int, ...]]:
    """Sets of guards to drop, the largest first; what is guarded stays before its alternative."""
    # More guards than this are tried all together and one by one.
    if len(sites) > 8:
        yield tuple(range(len(sites)))
        yield from ((n,) for n in range(len(sites)))
        return
    options = [(n, -1 - n, None) if site.has_alternative else (n, None) for n, site in enumerate(sites)]
    found = [tuple(n for n in choice if n is not None) for choice in product(*options)]
    yield from sorted((f for f in found if f), key=lambda f: (-len(f), sum(n < 0 for n in f)))


def _number(block: str, sites: Sequence[GuardSite], choice: int) -> int:
    number = choice if choice >= 0 else -1 - choice
    if number >= len(sites):
        shown = "; ".join(f"{n}: {site}" for n, site in enumerate(sites))
        raise error(
            codes.NO_GUARD,
            f"block {block} has {counted(len(sites), 'guard', 'guards')}, there is no guard {number}",
            help=shown,
        )
    if choice < 0 and not sites[number].has_alternative:
        message = f"guard {number} of block {block}, {sites[number]}, has no alternative that could stay"
        raise error(codes.NO_GUARD, message, sites[number].node.span)
    return number


def _instances(old: PrimFunc, new: PrimFunc, origins: Sequence[Sequence[Origin]]) -> Iterator[InstanceMap]:
    """Theta is the identity on loops where the dropped conditions hold."""
    old_loops, new_loops = loops_of_stores(old.body), loops_of_stores(new.body)
    for number, (loops, claims) in enumerate(zip(new_loops, origins, strict=True)):
        inputs = tuple(loop.var for loop in loops)
        for claim in claims:
            outputs: tuple[Expr, ...] = tuple(loop.var for loop in old_loops[claim.number])
            where = logical_and(*claim.conditions) if claim.conditions else None
            yield InstanceMap(number, claim.number, IndexMap(inputs, outputs), where)
