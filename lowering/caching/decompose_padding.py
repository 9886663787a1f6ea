"""Splitting a stage that pads in two: a constant fill, and a copy of the domain inside, without a branch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from layoutproof.ir.buffer import BufferLoad, BufferRegion, Range
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.expr import Expr, IfThenElseExpr, Logical, Not, Var, const, is_zero, logical_and
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.node import Node
from layoutproof.ir.operators import LogicalOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.stmt import Block, BufferStore, For, IterVar, seq
from layoutproof.ir.visit import free_variables, fresh, map_children, stores_in, substitute
from layoutproof.lowering import codes
from layoutproof.lowering.arith.affine import Affine, affine_of, expression_of
from layoutproof.lowering.arith.known_facts import Scope, conjuncts, is_index_like, symbol_scope
from layoutproof.lowering.caching.stage import apart
from layoutproof.lowering.layout.transform_layout import ROOT
from layoutproof.lowering.loops.nest import (
    Chain,
    LoopName,
    chain_around,
    find_loop,
    names_of,
    nest,
    parts_of,
    path_to,
    put,
)
from layoutproof.lowering.passes.base import ArgumentKind, Pass, option
from layoutproof.lowering.passes.effects import is_pure
from layoutproof.lowering.passes.find import find_block
from layoutproof.lowering.passes.witness_maps import pair_instances


@dataclass(slots=True)
class Inside:
    """The loops and iterators that visit the inside. `shifts` are the first values of iterators, `starts` the old
    values of shortened loops, `where` are guards over loops.
    """

    loops: list[For]
    iter_vars: list[IterVar]
    is_everything: bool
    shifts: dict[Var, Expr] = field(default_factory=dict)
    starts: dict[Var, Expr] = field(default_factory=dict)
    where: list[Expr] = field(default_factory=list)


def inside_of(chain: Chain, block: Block, conditions: Sequence[Expr], scope: Scope) -> Inside:
    """What is inside `conditions`, which are over the block's iterators; `scope` is what is known around the chain."""
    domains = scope
    for v in block.iter_vars:
        domains = domains.with_range(v.var, v.domain.start, v.domain.extent)
    left = [c for c in conditions if not domains.proves(c)]
    result = Inside(list(chain.loops), list(block.iter_vars), not left)
    inner = {v.var for v in block.iter_vars} | {loop.var for loop in chain.loops}
    for position, v in enumerate(block.iter_vars):
        loop = own_loop(v, chain, block)
        if loop is None:
            continue
        told = {c: forms for c in left if (forms := _bounds(c, v.var, inner)) is not None}
        part = _part(v, [form for forms in told.values() for form in forms], scope)
        if not told or part is None:
            continue
        left = [c for c in left if c not in told]
        low, extent = part
        dtype = loop.extent.dtype
        size = expression_of(extent, dtype)
        place = next(n for n, each in enumerate(result.loops) if each.var == loop.var)
        result.loops[place] = replace(loop, extent=size)
        result.iter_vars[position] = replace(v, domain=Range(const(0, dtype), size))
        start = expression_of(low, dtype)
        if not is_zero(start):
            result.shifts[v.var] = start
            result.starts[loop.var] = loop.var + start
    bindings = {v.var: v.binding for v in block.iter_vars}
    guards = [*parts_of(block.where), *(substitute(c, bindings) for c in left)]
    result.where = [substitute(g, result.starts) for g in guards]
    return result


def own_loop(v: IterVar, chain: Chain, block: Block) -> For | None:
    """The loop in the chain that runs over the iterator's domain, and over nothing else."""
    loop = next((loop for loop in chain.loops if loop.var == v.binding), None)
    if (
        loop is None
        or not is_zero(loop.start)
        or not is_zero(v.domain.start)
        or affine_of(loop.extent) != affine_of(v.domain.extent)
    ):
        return None
    others = [o.binding for o in block.iter_vars if o is not v] + [
        e for each in chain.loops for e in (each.start, each.extent)
    ]
    return None if any(loop.var in free_variables(e) for e in others) else loop


def _bounds(condition: Expr, variable: Var, inner: set[Var]) -> list[Affine] | None:
    """The condition as bounds of one iterator by invariants; None if it is none."""
    forms = conjuncts(condition)
    for form in forms:
        rest = {v for term in form.terms if term != variable for v in free_variables(term)}
        if form.terms.get(variable) not in (1, -1) or rest & inner:
            return None
    return forms if forms else None


def _part(v: IterVar, bounds: Sequence[Affine], scope: Scope) -> tuple[Affine, Affine] | None:
    """The start and the extent of the part of a domain within bounds; None if that is not known."""
    lows, ends = [Affine({})], [affine_of(v.domain.extent)]
    for bound in bounds:
        rest = Affine({t: c for t, c in bound.terms.items() if t != v.var}, bound.constant)
        if bound.terms[v.var] == 1:
            lows.append(rest.scaled(-1))
        else:
            ends.append(rest + Affine({}, 1))
    low = next((a for a in lows if all(scope.is_nonnegative(a - b) for b in lows)), None)
    end = next((a for a in ends if all(scope.is_nonnegative(b - a) for b in ends)), None)
    if low is None or end is None or not scope.is_nonnegative(end - low):
        return None
    return low, end - low


@dataclass(frozen=True)
class DecomposePadding(Pass):
    """Make of a block that pads a fill with the constant before a loop around it, and a copy of what is inside.

    The block is `y[v] = if_then_else(inside, x[...], constant)`, the fill is called `<block>_pad_const`. Loops that are
    an iterator by themselves run over its inside part, from 0; conditions on other loops become the guard of the block.
    """

    primitive: ClassVar[str] = "decompose_padding"
    block: str = field(metadata=option(ArgumentKind.NAME))
    loop: LoopName = field(metadata=option(ArgumentKind.LOOP))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with two stages.

        Raises LayoutproofError for unknown names, a block that does not pad, a condition that always holds, and a loop
        that contains more than the block.
        """
        if self.block == ROOT:
            raise error(codes.NO_PADS, "the body of a function is no block that pads; name one", func.span)
        block, loop = find_block(func, self.block), find_loop(func, self.block, self.loop)
        padding = _padding_of(block)
        chain = _chain(loop, block)
        scope = symbol_scope(func)
        for stmt in path_to(func.body, loop):
            scope = scope.with_range(stmt.var, stmt.start, stmt.extent) if isinstance(stmt, For) else scope
        inside = inside_of(chain, block, padding.conditions, scope)
        if inside.is_everything:
            raise error(codes.NO_PADS, f"the condition of block {self.block} always holds: it pads nothing", block.span)
        fill = nest(chain.loops, _fill(block, padding, names_of(func)))
        copy = nest(inside.loops, _copy(block, padding, inside))
        new = apart(put(func, loop, seq(fill, copy)))
        return Rewrite(func, new, Witness(_instances(func, new, block, padding, inside)))


@dataclass(frozen=True, slots=True)
class Padding:
    """What a block stores: `value` where all conditions hold, else `constant`."""

    store: BufferStore
    conditions: tuple[Expr, ...]
    value: Expr
    constant: Expr


def _padding_of(block: Block) -> Padding:
    """Raises LayoutproofError if a block is not one store of a choice between something and a constant."""
    store = block.body
    if block.init is not None or not isinstance(store, BufferStore) or not isinstance(store.value, IfThenElseExpr):
        raise _no_padding(block, "is not one store of `if_then_else(inside, x, constant)`")
    choice = store.value
    if not is_pure(choice.condition):
        raise _no_padding(block, "pads by a condition on what is in memory")
    if is_pure(choice.otherwise):
        return Padding(store, conjuncts_of(choice.condition, True), choice.then, choice.otherwise)
    if is_pure(choice.then):
        return Padding(store, conjuncts_of(choice.condition, False), choice.otherwise, choice.then)
    raise _no_padding(block, "chooses between two values from memory, and none of them is a constant")


def _no_padding(block: Block, what: str) -> LayoutproofError:
    return error(codes.NO_PADS, f"block {block.name} {what}", block.span)


def conjuncts_of(condition: Expr, holds: bool) -> tuple[Expr, ...]:
    """Conditions whose conjunction is equivalent to the condition having the truth value `holds`."""
    if isinstance(condition, Not):
        return conjuncts_of(condition.operand, not holds)
    if isinstance(condition, Logical) and (condition.op is LogicalOp.AND) == holds:
        return (*conjuncts_of(condition.lhs, holds), *conjuncts_of(condition.rhs, holds))
    return (condition if holds else Not(condition),)


def _chain(loop: For, block: Block) -> Chain:
    """The loops from `loop` to the block. Raises LayoutproofError if anything else is between them."""
    path = path_to(loop, block)
    chain = chain_around(path, block)
    if len(chain.links) != len(path) or chain.conditions:
        message = f"loop {loop.var.name} holds more than the loops of block {block.name}"
        raise error(codes.LOOP_NEST, message, loop.span)
    return chain


def _fill(block: Block, padding: Padding, taken: set[str]) -> Block:
    body = replace(padding.store, value=padding.constant)
    return replace(
        block, name=fresh(f"{block.name}_pad_const", taken), body=body, reads=() if block.reads is not None else None
    )


def _copy(block: Block, padding: Padding, inside: Inside) -> Block:
    """The block for what is inside: iterators that were shortened count from 0."""
    shifts = inside.shifts
    store = padding.store
    indices = tuple(_index(index, shifts) for index in store.indices)
    value = _shifted(padding.value, shifts)
    return replace(
        block,
        iter_vars=tuple(inside.iter_vars),
        body=replace(store, indices=indices, value=value),
        where=logical_and(*inside.where),
        reads=None if block.reads is None else tuple(_region(r, shifts) for r in block.reads),
        writes=None if block.writes is None else tuple(_region(r, shifts) for r in block.writes),
    )


def _shifted(node: Expr, shifts: Mapping[Var, Expr]) -> Expr:
    """An expression over iterators that count from elsewhere, its indices in order."""
    moved = substitute(node, {v: v + start for v, start in shifts.items()})

    def visit(current: Node) -> Node:
        rebuilt = map_children(current, visit)
        if isinstance(rebuilt, BufferLoad) and isinstance(current, BufferLoad):
            return replace(rebuilt, indices=tuple(map(_ordered, rebuilt.indices)))
        return rebuilt

    result = visit(moved)
    assert isinstance(result, Expr)
    return result


def _ordered(index: Expr) -> Expr:
    return expression_of(affine_of(index), index.dtype) if index.dtype.lanes == 1 and is_index_like(index) else index


def _index(index: Expr, shifts: Mapping[Var, Expr]) -> Expr:
    return _ordered(_shifted(index, shifts)) if set(free_variables(index)) & set(shifts) else index


def _region(region: BufferRegion, shifts: Mapping[Var, Expr]) -> BufferRegion:
    return replace(
        region, ranges=tuple(Range(_index(r.start, shifts), _index(r.extent, shifts)) for r in region.ranges)
    )


def _instances(old: PrimFunc, new: PrimFunc, block: Block, padding: Padding, inside: Inside) -> tuple[InstanceMap, ...]:
    """The fill computes what the choice did where not all conditions hold; the copy what it did inside."""
    stores = list(stores_in(old.body))
    number = next(n for n, store in enumerate(stores) if store is padding.store)
    maps = list(pair_instances(old, new, [*range(number + 1), *range(number, len(stores))]))
    bindings = {v.var: v.binding for v in block.iter_vars}
    outside = Not(substitute(logical_and(*padding.conditions), bindings))
    maps[number] = replace(maps[number], where=outside)
    copied = maps[number + 1].instances
    assert copied is not None
    outputs = tuple(substitute(o, inside.starts) for o in copied.outputs)
    maps[number + 1] = replace(maps[number + 1], instances=IndexMap(copied.inputs, outputs))
    return tuple(maps)
