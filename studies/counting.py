"""What a policy costs, counted: stores, loads and operations as formulas in the extents, and cells of padding.

Nothing is fitted. A block runs over a box of loops, so it runs as often as the product of their extents says. With the
guard that its layout caused, it runs once for each point of its box before it was laid out: the map between the two was
proved to be injective when it was applied, and the guard is the condition of its image. A guard that the operator has
itself is counted as a sum over the loops that it depends on, of which all but one have constant extents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import (
    Binary,
    Cast,
    Compare,
    Expr,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Select,
    Var,
    binary,
    const,
)
from layoutproof.ir.intrinsics import Call, Reinterpret, Undef
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, BufferStore
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import children, free_variables, stores_in, substitute, walk
from layoutproof.lowering.arith.affine import expression, polynomial
from layoutproof.lowering.loops.nest import GuardKind, guard_sites, loops_of_block
from layoutproof.studies.instruments import MARK
from layoutproof.studies.judge import Judged

ZERO, ONE = const(0), const(1)
_MOST_POINTS = 1 << 12


class NotCounted(Exception):
    """No formula is known for a number of instances, and why."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Numbers of stores, loads and operations on elements, over the extents of a program."""

    stores: Expr = ZERO
    loads: Expr = ZERO
    operations: Expr = ZERO

    def plus(self, other: Costs, factor: int = 1) -> Costs:
        """The sum, or with factor -1 the difference."""
        parts = ((getattr(self, name), getattr(other, name)) for name in ("stores", "loads", "operations"))
        return Costs(*(_simple(a + const(factor) * b) for a, b in parts))

    def texts(self) -> dict[str, str]:
        """The formulas as text."""
        return {name: expr_text(getattr(self, name)) for name in ("stores", "loads", "operations")}

    def values(self, sizes: Mapping[str, int]) -> tuple[int, int, int]:
        """The numbers for extents."""
        stores, loads, operations = (int(evaluate(e, sizes)) for e in (self.stores, self.loads, self.operations))
        return stores, loads, operations


def _simple(value: Expr) -> Expr:
    """The formula as a polynomial over extents and quotients of them."""
    return expression(polynomial(value))


def _times(a: Expr, b: Expr) -> Expr:
    return _simple(a * b)


def product_of(extents: Iterator[Expr] | tuple[Expr, ...]) -> Expr:
    """The product of extents; 1 for none."""
    found: Expr = ONE
    for extent in extents:
        found = _times(found, _narrow(extent))
    return found


def _narrow(extent: Expr) -> Expr:
    return const(extent.value) if isinstance(extent, IntImm) else extent


def costs_of(judged: Judged, func: PrimFunc) -> Costs:
    """What one of the programs of a cell does: the guarded one, or the one at the end. Raises NotCounted."""
    total = Costs()
    for block, store, times in _instances(judged, func):
        each = _of_value(store.value)
        masked = _masked_loads(store.value)
        loads = _times(times, const(each[0] - masked))
        if masked:
            loads = _simple(loads + _times(const(masked), _logical_count(judged, block)))
        total = total.plus(Costs(times, loads, _times(times, const(each[1]))))
    return total


def _instances(judged: Judged, func: PrimFunc) -> Iterator[tuple[str, BufferStore, Expr]]:
    """Each store on elements of a program, with its block's name and how often it runs."""
    assert judged.question is not None
    logical = {n.name for n in walk(judged.question.logical.body) if isinstance(n, Block)}
    for block in (n for n in walk(func.body) if isinstance(n, Block) and not n.is_root):
        for store in stores_in(block):
            if store.buffer.name.endswith(MARK) or isinstance(store.value, Undef):
                continue
            if block.name in logical:
                yield block.name, store, _block_count(judged, func, block.name)
            elif block.name.startswith("buffer_") and block.name.endswith("_padding"):
                yield block.name, store, padding_of(func, store.buffer)
            else:
                yield block.name, store, product_of(tuple(loop.extent for loop in loops_of_block(func, block.name)))


def _block_count(judged: Judged, func: PrimFunc, name: str) -> Expr:
    """How often a block of the operator runs: in its guard's image, or in the whole box once the guard is gone."""
    guarded = any(site.kind is not GuardKind.VALUE for site in guard_sites(func, name))
    if guarded:
        return _logical_count(judged, name)
    return product_of(tuple(loop.extent for loop in loops_of_block(func, name)))


def _logical_count(judged: Judged, name: str) -> Expr:
    """How often a block runs before layouts change it."""
    assert judged.question is not None
    func = judged.question.logical
    loops = loops_of_block(func, name)
    sites = [site for site in guard_sites(func, name) if site.kind is not GuardKind.VALUE]
    if not sites:
        return product_of(tuple(loop.extent for loop in loops))
    block = next(n for n in walk(func.body) if isinstance(n, Block) and n.name == name)
    values = {iter_var.var: iter_var.binding for iter_var in block.iter_vars}
    conditions = [substitute(site.condition, values) for site in sites]
    return sum_over({loop.var: loop.extent for loop in loops}, conditions)


def sum_over(extents: Mapping[Var, Expr], conditions: list[Expr]) -> Expr:
    """The number of points of a box that satisfy conditions on sums of its variables.

    Raises NotCounted where more than one variable of the conditions has an extent that is no constant.
    """
    free = [v for v in extents if not any(v in free_variables(c) for c in conditions)]
    bound = [v for v in extents if v not in free]
    fixed = [v for v in bound if isinstance(extents[v], IntImm)]
    moving = [v for v in bound if v not in fixed]
    if len(moving) > 1:
        raise NotCounted(f"a guard depends on {' and '.join(v.name for v in moving)}, whose extents are not constant")
    ranges = [range(_constant(extents[v])) for v in fixed]
    found: Expr = ZERO
    for count, point in enumerate(product(*ranges)):
        if count >= _MOST_POINTS:
            raise NotCounted(f"a guard depends on more than {_MOST_POINTS} points")
        values: Mapping[Var, Expr] = {v: const(number) for v, number in zip(fixed, point, strict=True)}
        parts = [substitute(condition, values) for condition in conditions]
        found = found + (_interval(moving[0], extents[moving[0]], parts) if moving else _truth(parts))
    outer = product_of(tuple(extents[v] for v in free))
    return _times(found, outer)


def _constant(extent: Expr) -> int:
    assert isinstance(extent, IntImm)
    return extent.value


def _truth(conditions: list[Expr]) -> Expr:
    return ONE if all(evaluate(condition, {}) for condition in conditions) else ZERO


def _interval(variable: Var, extent: Expr, conditions: list[Expr]) -> Expr:
    """The number of values of a variable from 0 that satisfy bounds on it plus a constant."""
    low: Expr = ZERO
    high: Expr = extent
    for condition in conditions:
        if not isinstance(condition, Compare):
            raise NotCounted(f"`{expr_text(condition)}` is no bound")
        left, right, op = condition.lhs, condition.rhs, condition.op
        if op not in (CompareOp.LT, CompareOp.LE):
            raise NotCounted(f"`{expr_text(condition)}` is no bound")
        strict = const(int(op is CompareOp.LT))
        if variable in free_variables(right):
            low = binary(BinaryOp.MAX, low, _simple(left - _rest(right, variable) + strict))
        else:
            high = binary(BinaryOp.MIN, high, _simple(right - _rest(left, variable) + ONE - strict))
    return binary(BinaryOp.MAX, ZERO, high - low)


def _rest(side: Expr, variable: Var) -> Expr:
    rest = _simple(side - variable)
    if variable in free_variables(rest):
        raise NotCounted(f"`{expr_text(side)}` is not {variable.name} and a constant")
    return rest


def padding_of(func: PrimFunc, buffer: Buffer) -> Expr:
    """The number of a buffer's cells of padding: all cells but one for each element, as its map is injective."""
    from layoutproof.ir.layout_record import layout_records

    record = layout_records(func).get(buffer.data.name)
    if record is None:
        return ZERO
    return _simple(product_of(tuple(buffer.shape)) - product_of(record.logical_shape))


def _of_value(value: Expr) -> tuple[int, int]:
    """Loads and operations of one evaluation of a value; arithmetic of indices is not counted."""
    loads = operations = 0
    stack: list[Node] = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, BufferLoad):
            loads += 1
            continue
        if isinstance(node, IfThenElseExpr):
            operations += 1  # the mask, whatever index arithmetic it takes
            stack.append(node.then)
            continue
        operations += isinstance(node, Binary | Call | Select | Compare | Cast | Reinterpret | Logical | Not)
        stack.extend(children(node))
    return loads, operations


def _masked_loads(value: Expr) -> int:
    """Loads that run only where a mask holds."""
    return sum(_of_value(node.then)[0] for node in walk(value) if isinstance(node, IfThenElseExpr))


def cost_record(judged: Judged) -> dict[str, object]:
    """A cell's costs as plain data: what the program without guards does more than the guarded one, the padding's
    bytes, what padding takes to be filled; texts of formulas, or why there are none.
    """
    if judged.question is None or judged.end is None:
        return {}
    guarded, end = judged.question.guarded, judged.end
    try:
        more = costs_of(judged, end).plus(costs_of(judged, _without_fills(guarded)), -1)
        padding = {b.name: padding_of(end, b) for b in _buffers(end) if not b.name.endswith(MARK)}
        cells = {name: cells for name, cells in padding.items() if cells != ZERO}
        size: Expr = ZERO
        for buffer in (b for b in _buffers(end) if b.name in padding):
            size = _simple(size + const(buffer.dtype.bytes) * padding[buffer.name])
    except NotCounted as problem:
        return {"not_counted": str(problem)}
    extra = {f"extra_{name}": text for name, text in more.texts().items()}
    padded = {name: expr_text(count) for name, count in cells.items()}
    return {**extra, "padding_bytes": expr_text(size), "padding_cells": padded}


def _buffers(func: PrimFunc) -> tuple[Buffer, ...]:
    allocated = (b for n in walk(func.body) if isinstance(n, Block) for b in n.alloc_buffers)
    return tuple(dict.fromkeys((*func.buffers, *allocated)))


def _without_fills(func: PrimFunc) -> PrimFunc:
    """The program as its operator has it: stages that fill padding, and copies, are extra."""
    from layoutproof.studies.claims import without_block

    for name in [n.name for n in walk(func.body) if isinstance(n, Block)]:
        if name.endswith(("_padding", "_local")):
            func = without_block(func, name).new
    return func
