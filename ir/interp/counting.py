"""How large a full run is: how many store instances it has, told from the program without running it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

import numpy as np

from layoutproof.ir.expr import Binary, BinaryOp, Compare, CompareOp, Expr, Logical, LogicalOp, Var
from layoutproof.ir.interp.slice_cells import cannot_slice, open_boxes, start_boxes
from layoutproof.ir.interp.slice_ranges import Boxes, range_of
from layoutproof.ir.interp.slice_units import Access, Definition, take_apart
from layoutproof.ir.primfunc import PrimFunc


def count_instances(func: PrimFunc, sizes: Mapping[str, object] | None = None) -> int:
    """How many store instances a full run has at most: every loop in full, every branch taken.

    Loops that a branch's equalities pin to one value count once there: a block's init runs at the start of the reduction only.
    `sizes` gives the names in shapes and integer parameters, or arrays by the names of buffers, whose shapes give them. Raises
    LayoutproofError for a loop whose extent depends on data or on a name without a value.
    """
    symbols: dict[str, int] = {}
    shapes = {b.name: b.shape for b in func.buffers}
    for name, value in (sizes if sizes is not None else {}).items():
        if isinstance(value, np.ndarray):
            shape = shapes.get(name, ())
            known = zip(shape[: value.ndim], value.shape[: len(shape)], strict=True)
            symbols.update({extent.name: size for extent, size in known if isinstance(extent, Var)})
        elif isinstance(value, int | np.integer):
            symbols[name] = int(value)
    return sum(_instances(access, symbols) for unit in take_apart(func.body) for access in unit.writes)


def _instances(access: Access, symbols: Mapping[str, int]) -> int:
    boxes = open_boxes(start_boxes(symbols), access, frozenset())
    extents = {}
    for loop in access.loops:
        extent = range_of(loop.stmt.extent, boxes)
        if extent is None:
            raise cannot_slice(f"the extent of loop {loop.name} is not known")
        extents[loop.name] = max(int(extent[1][0]), 0)
    for name in _pinned(access, boxes):
        extents[name] = min(extents[name], 1)
    return prod(extents.values())


def _pinned(access: Access, boxes: Boxes) -> Iterator[str]:
    """The loops that have one value at most wherever an access's guards hold, for each value of the others."""
    pins = _Pins(boxes, {s.name: s.value if isinstance(s, Definition) else None for s in access.steps})
    for guard in access.guards:
        for equality in _equalities(guard):
            for side, other in ((equality.lhs, equality.rhs), (equality.rhs, equality.lhs)):
                value = _point(other, boxes)
                if value is not None:
                    yield from pins.of(side, value)


def _equalities(guard: Expr) -> Iterator[Compare]:
    if isinstance(guard, Logical) and guard.op is LogicalOp.AND:
        yield from _equalities(guard.lhs)
        yield from _equalities(guard.rhs)
    elif isinstance(guard, Compare) and guard.op is CompareOp.EQ:
        yield guard


def _point(expr: Expr, boxes: Boxes) -> int | None:
    found = range_of(expr, boxes)
    return int(found[0][0]) if found is not None and found[0][0] == found[1][0] else None


class _Pins:
    """Which loops have one value where an expression has a given one; `steps` has each name's definition, None for a loop."""

    def __init__(self, boxes: Boxes, steps: Mapping[str, Expr | None]) -> None:
        self.boxes = boxes
        self.steps = steps

    def of(self, expr: Expr, value: int) -> Iterator[str]:
        """The loops that `expr == value` pins."""
        if isinstance(expr, Var):
            if expr.name in self.steps:
                definition = self.steps[expr.name]
                yield from (expr.name,) if definition is None else self.of(definition, value)
        elif isinstance(expr, Binary):
            yield from self._operands(expr, value)

    def _operands(self, expr: Binary, value: int) -> Iterator[str]:
        match expr.op:
            case BinaryOp.ADD:
                yield from self._sum(expr.lhs, expr.rhs, value)
            case BinaryOp.SUB:
                first, second = _point(expr.lhs, self.boxes), _point(expr.rhs, self.boxes)
                if second is not None:
                    yield from self.of(expr.lhs, value + second)
                elif first is not None:
                    yield from self.of(expr.rhs, first - value)
            case BinaryOp.MUL:
                for side, other in ((expr.lhs, expr.rhs), (expr.rhs, expr.lhs)):
                    factor = _point(other, self.boxes)
                    if factor:  # a value between the multiples is never met: then any number does
                        yield from self.of(side, value // factor)
            case _:
                return

    def _sum(self, lhs: Expr, rhs: Expr, value: int) -> Iterator[str]:
        """A sum that is as small, or as large, as it can be has both operands so."""
        a, b = range_of(lhs, self.boxes), range_of(rhs, self.boxes)
        if a is None or b is None:
            return
        for x, y in zip(a, b, strict=True):
            if value == int(x[0]) + int(y[0]):
                yield from self.of(lhs, int(x[0]))
                yield from self.of(rhs, int(y[0]))
                return
        for side, other in ((lhs, rhs), (rhs, lhs)):
            known = _point(other, self.boxes)
            if known is not None:
                yield from self.of(side, value - known)
