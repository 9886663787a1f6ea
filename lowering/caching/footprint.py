"""The footprint of a statement on a buffer: the hull of its accesses. It is proposed, not proved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from types import UnionType

from layoutproof.ir.buffer import Buffer, BufferLoad, Range
from layoutproof.ir.expr import Broadcast, Expr, IfThenElseExpr, Logical, Not, Ramp, Var, const
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.node import Node
from layoutproof.ir.operators import LogicalOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, BufferStore, Evaluate, For, IfThenElse, Let, Stmt
from layoutproof.ir.visit import children, free_variables
from layoutproof.lowering.arith.affine import Affine, affine_of, expression_of
from layoutproof.lowering.arith.known_facts import Known, Scope, constants_of, symbol_scope
from layoutproof.lowering.caching.stage import Place
from layoutproof.lowering.loops.nest import end_over_loops, path_to
from layoutproof.lowering.passes.effects import is_pure


@dataclass(frozen=True, slots=True)
class Access:
    """A load or a store, with what is known at its place, and the enclosing conditions of branches and choices."""

    node: BufferLoad | BufferStore
    scope: Scope
    conditions: tuple[Expr, ...]
    assumed: bool = False


def loaded_box(func: PrimFunc, place: Place, buffer: Buffer, over: AbstractSet[Var] | None = None) -> tuple[Range, ...]:
    """The box that holds all loads from a buffer in one run of a block's nest.

    If `over` is given, in all runs over these loops, and the box may be beyond the buffer.
    """
    return _box(func, place, buffer, BufferLoad, over=over)


def stored_box(func: PrimFunc, place: Place, buffer: Buffer, over: AbstractSet[Var] | None = None) -> tuple[Range, ...]:
    """The box that holds all stores to a buffer in one run of a block's nest; `over` is as in `loaded_box`."""
    return _box(func, place, buffer, BufferStore, over=over)


def touched_box(func: PrimFunc, place: Place, buffer: Buffer) -> tuple[Range, ...]:
    """The box that holds all accesses of a buffer in one run of a block's nest, those in assumptions too."""
    return _box(func, place, buffer, BufferLoad | BufferStore, assumed=True)


def _box(
    func: PrimFunc,
    place: Place,
    buffer: Buffer,
    kind: type | UnionType,
    *,
    assumed: bool = False,
    over: AbstractSet[Var] | None = None,
) -> tuple[Range, ...]:
    """The least box known to contain the accesses, in terms of invariants; axes without known bounds are whole."""
    outside = around = symbol_scope(func)
    for stmt in path_to(func.body, place.nest):
        around = _inside(stmt, around)
        varies = isinstance(stmt, For) and over is not None and stmt.var in over
        outside = _inside(stmt, outside) if varies else _fixed(stmt, outside)
    scope = outside
    for stmt in path_to(place.nest, place.target):
        scope = _inside(stmt, scope)
    every = (a for a in _accesses(place.target, scope) if a.node.buffer == buffer and isinstance(a.node, kind))
    found = [a for a in every if assumed or not a.assumed]
    hull = [
        _axis([(a.node.indices[axis], a.scope) for a in found], extent, around, cut=over is None)
        for axis, extent in enumerate(buffer.shape)
    ]
    there = {*outside.known, *constants_of(func)} - (frozenset() if over is None else over)
    return tuple(
        least if found and set(free_variables(least)) <= there else Range(const(0, extent.dtype), extent)
        for least, extent in zip(hull, buffer.shape, strict=True)
    )


def _fixed(stmt: Stmt, scope: Scope) -> Scope:
    """The facts below a statement about invariants: bounds, without ends to substitute."""
    inner = _inside(stmt, scope)
    new = {v: Known(known.interval) for v, known in inner.known.items() if v not in scope.known}
    return Scope({**inner.known, **new})


def _inside(stmt: Node, scope: Scope) -> Scope:
    match stmt:
        case For(var=var, start=start, extent=extent):
            return scope.with_range(var, start, extent)
        case Let(var=var, value=value) if value.dtype.is_integer and is_pure(value):
            return scope.with_value(var, value)
        case Block(where=where):
            return _domains(stmt, scope).with_condition(where)
        case _:
            return scope


def _domains(block: Block, scope: Scope) -> Scope:
    """The facts in a block without its guard, which does not apply to its init."""
    for each in block.iter_vars:
        bound = scope.known.get(each.binding) if isinstance(each.binding, Var) else None
        if bound is not None and bound.low is None and bound.high is None:
            scope = scope.with_value(each.var, each.binding)  # an invariant: one point of the domain
        else:
            scope = scope.with_range(each.var, each.domain.start, each.domain.extent)
    return scope


def common_conditions(block: Block, buffer: Buffer) -> tuple[Expr, ...]:
    """The conditions inside a block, of branches and of choices in values, under which alone it accesses a buffer."""
    parts = [block.body] if block.init is None else [block.body, block.init]
    found = [
        a.conditions for part in parts for a in _accesses(part, Scope()) if a.node.buffer == buffer and not a.assumed
    ]
    return tuple(c for c in found[0] if all(c in others for others in found)) if found else ()


def _accesses(node: Node, scope: Scope, conditions: tuple[Expr, ...] = ()) -> Iterator[Access]:
    if isinstance(node, BufferLoad | BufferStore):
        yield Access(node, scope, conditions)
    match node:
        case IfThenElse(condition=condition, then=then, otherwise=otherwise):
            yield from _accesses(condition, scope, conditions)
            yield from _accesses(then, scope.with_condition(condition), (*conditions, condition))
            if otherwise is not None:
                yield from _accesses(otherwise, scope.with_condition(condition, False), (*conditions, Not(condition)))
        case IfThenElseExpr(condition=condition, then=then, otherwise=otherwise):
            yield from _accesses(condition, scope, conditions)
            yield from _accesses(then, scope.with_condition(condition), (*conditions, condition))
            yield from _accesses(otherwise, scope.with_condition(condition, False), (*conditions, Not(condition)))
        case Logical(op=op, lhs=lhs, rhs=rhs):
            holds = op is LogicalOp.AND
            yield from _accesses(lhs, scope, conditions)
            yield from _accesses(rhs, scope.with_condition(lhs, holds), (*conditions, lhs if holds else Not(lhs)))
        case Evaluate(value=Assume(condition=condition)):
            yield from (replace(a, assumed=True) for a in _accesses(condition, scope, conditions))
        case Block(init=init) if init is not None:
            yield from _accesses(replace(node, init=None), scope, conditions)
            yield from _accesses(init, _domains(node, scope), conditions)
        case Buffer():
            return
        case _:
            inner = _inside(node, scope)
            for child in children(node):
                yield from _accesses(child, inner, conditions)


def _axis(indices: Sequence[tuple[Expr, Scope]], extent: Expr, around: Scope, *, cut: bool) -> Range:
    """The range of some indices; `around` is what is known of the invariants in which its ends are. If `cut`, it is one
    within the buffer.
    """
    whole = Range(const(0, extent.dtype), extent)
    end = affine_of(extent) + Affine({}, -1)
    ends = [_ends(index, scope) for index, scope in indices]
    lows = [_cut(first, Affine({}), around, up=True) if cut or first is None else first for first, _ in ends]
    lasts = [_cut(final, end, around, up=False) if cut or final is None else final for _, final in ends]
    low, last = _least(lows, around), _largest(lasts, around)
    if low is None or last is None:
        return whole
    return Range(expression_of(low, extent.dtype), expression_of(last - low + Affine({}, 1), extent.dtype))


def _ends(index: Expr, scope: Scope) -> tuple[Affine | None, Affine | None]:
    """The least and the largest value of an index, in terms of invariants."""
    if isinstance(index, Broadcast):
        return _ends(index.value, scope)
    if isinstance(index, Ramp):
        steps = affine_of(index.stride).scaled(index.dtype.lanes - 1)
        low, last = _ends(index.base, scope)
        return (low, None if last is None else last + steps) if scope.is_nonnegative(steps) else (None, None)
    return end_over_loops(affine_of(index), scope, highest=False), end_over_loops(affine_of(index), scope, highest=True)


def _cut(value: Affine | None, limit: Affine, scope: Scope, *, up: bool) -> Affine:
    """The value if it is known to be within the buffer; else the buffer's own end."""
    if value is None:
        return limit
    inside = value - limit if up else limit - value
    return value if scope.is_nonnegative(inside) else limit


def _least(values: Sequence[Affine], scope: Scope) -> Affine | None:
    """The smallest of some values; None if that is not known."""
    return next((v for v in values if all(scope.is_nonnegative(other - v) for other in values)), None)


def _largest(values: Sequence[Affine], scope: Scope) -> Affine | None:
    least = _least([v.scaled(-1) for v in values], scope)
    return None if least is None else least.scaled(-1)
