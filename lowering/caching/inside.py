"""The part of a block's domain in which conditions hold: shorter loops where that says it, guards where it does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from layoutproof.ir.buffer import Range
from layoutproof.ir.expr import Expr, Var, const, is_zero
from layoutproof.ir.stmt import Block, For, IterVar
from layoutproof.ir.visit import free_variables, substitute
from layoutproof.lowering.affine import Affine, affine_of, expression_of
from layoutproof.lowering.known import Scope, conjuncts
from layoutproof.lowering.loops.guards import parts_of
from layoutproof.lowering.loops.nest import Chain


@dataclass(slots=True)
class Inside:
    """The loops and iterators that visit what is inside.

    `shifts` says where the parts of iterators begin, `starts` the old values of loops that were shortened; `where` are guards over loops.
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
    if loop is None or not is_zero(loop.start) or not is_zero(v.domain.start) or affine_of(loop.extent) != affine_of(v.domain.extent):
        return None
    others = [o.binding for o in block.iter_vars if o is not v] + [e for each in chain.loops for e in (each.start, each.extent)]
    return None if any(loop.var in free_variables(e) for e in others) else loop


def _bounds(condition: Expr, variable: Var, inner: set[Var]) -> list[Affine] | None:
    """The condition as bounds of one iterator in terms of what is the same throughout; None where it is none."""
    forms = conjuncts(condition)
    for form in forms:
        rest = {v for term in form.terms if term != variable for v in free_variables(term)}
        if form.terms.get(variable) not in (1, -1) or rest & inner:
            return None
    return forms if forms else None


def _part(v: IterVar, bounds: Sequence[Affine], scope: Scope) -> tuple[Affine, Affine] | None:
    """Where the part of a domain within bounds begins, and its extent; None where that is not known."""
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
