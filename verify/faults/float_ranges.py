"""Between which numbers a float lies, and whether it may be NaN: enough to know that a clipped value fits the integer
that it becomes, also when it was stored in between. Part of the trust base.

Each operation is monotone in each operand, and so is rounding: results at the ends of ranges bound all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import (
    Binary,
    Broadcast,
    Cast,
    Expr,
    FloatImm,
    IfThenElseExpr,
    Select,
    Var,
)
from layoutproof.ir.interval import Interval
from layoutproof.ir.intrinsics import Call, OpaqueCall
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.semantics import int_to_float, round_float
from layoutproof.ir.stmt import Block, BufferStore, Let
from layoutproof.ir.visit import nodes_of
from layoutproof.verify.program.instances import Program


@dataclass(frozen=True, slots=True)
class FloatRange:
    """`low` to `high`, both included, and NaN where `nan` says so."""

    low: float
    high: float
    nan: bool

    @property
    def is_finite(self) -> bool:
        """Whether it has neither NaN nor an infinity."""
        return not self.nan and math.isfinite(self.low) and math.isfinite(self.high)

    def joined(self, other: FloatRange) -> FloatRange:
        """What lies in one of both."""
        return FloatRange(min(self.low, other.low), max(self.high, other.high), self.nan or other.nan)


ANYTHING = FloatRange(-math.inf, math.inf, True)

Integers = Callable[[Expr], Interval | None]
"""Between which numbers an integer expression lies; None where parts of it may wrap."""


@dataclass(frozen=True, slots=True)
class FloatRanges:
    """Ranges of expressions of one program. `integers` knows the integers that become floats."""

    program: Program
    integers: Integers
    known: dict[Var, FloatRange] = field(default_factory=dict)

    def of(self, expr: Expr) -> FloatRange:
        """The range of the elements of a float."""
        match expr:
            case FloatImm(value=value):
                return ANYTHING if math.isnan(value) else FloatRange(value, value, False)
            case Broadcast(value=value):
                return self.of(value)
            case Cast(dtype=dtype, value=value):
                return self._cast(dtype.element, value)
            case Binary(op=BinaryOp.MIN | BinaryOp.MAX as op):
                return _selected(op is BinaryOp.MAX, self.of(expr.lhs), self.of(expr.rhs))
            case Binary(op=op) if op in _OPERATIONS:
                return _combined(_OPERATIONS[op], self.of(expr.lhs), self.of(expr.rhs), expr.dtype.element)
            case Call(function=function, arguments=(value,)) if function in _WHOLE:
                found = self.of(value)
                below, above = _WHOLE[function]
                low = float(below(found.low)) if math.isfinite(found.low) else found.low
                high = float(above(found.high)) if math.isfinite(found.high) else found.high
                return FloatRange(low, high, found.nan)
            case Select() | IfThenElseExpr():
                return self.of(expr.then).joined(self.of(expr.otherwise))
            case BufferLoad(buffer=buffer):
                return self._stored(buffer.data, buffer.dtype)
            case _:
                return ANYTHING

    def _cast(self, dtype: DType, value: Expr) -> FloatRange:
        if value.dtype.is_float:
            found = self.of(value)
            return FloatRange(round_float(found.low, dtype), round_float(found.high, dtype), found.nan)
        interval = self.integers(value) if value.dtype.is_integer else None
        if interval is None:
            return ANYTHING
        return FloatRange(int_to_float(interval.low, dtype), int_to_float(interval.high, dtype), False)

    def _stored(self, data: Var, dtype: DType) -> FloatRange:
        """What a load of a temporary finds, if it finds anything: what some statement stored."""
        if data not in self.known:
            self.known[data] = ANYTHING  # what it is while its own stores are looked at
            inside = FloatRanges(self.program, _unknown_integers, self.known)
            found = [inside.of(store.value) for store in stores_of(self.program, data, dtype)]
            self.known[data] = reduce(FloatRange.joined, found) if found else ANYTHING
        return self.known[data]


def _unknown_integers(expr: Expr) -> None:
    """Of integers in stores elsewhere nothing is asked: their loops are others."""


def stores_of(program: Program, data: Var, dtype: DType) -> Iterable[BufferStore]:
    """All that store to a temporary; none where something else may, or another type of elements sees the memory."""
    function = program.function
    if program.allocation(data) is None or any(buffer.data == data for buffer in function.buffers):
        return ()
    renaming = map(_may_rename, nodes_of(function.body, OpaqueCall, Block, Let))
    if program.allocations(data) != 1 or any(renaming):
        return ()
    touching = tuple(program.touching(data))
    if any(access.buffer.dtype.element != dtype.element or access.buffer.data != data for access in touching):
        return ()
    return [access.node for access in touching if isinstance(access.node, BufferStore)]


def _may_rename(node: Node) -> bool:
    """Whether a node may give memory another name, or write it in a way that is not looked into."""
    match node:
        case OpaqueCall():
            return True
        case Block(match_buffers=regions):
            return bool(regions)
        case Let(var=var):
            return not (var.dtype.is_integer or var.dtype.is_float or var.dtype.is_bool)
        case _:
            return False


_WHOLE: Mapping[str, tuple[Callable[[float], int], Callable[[float], int]]] = {
    "floor": (math.floor, math.floor),
    "ceil": (math.ceil, math.ceil),
    "trunc": (math.trunc, math.trunc),
    "round": (math.floor, math.ceil),  # whatever becomes of a half
}
_OPERATIONS: Mapping[BinaryOp, Callable[[float, float], float]] = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.SUB: lambda a, b: a - b,
    BinaryOp.MUL: lambda a, b: a * b,
}


def _combined(operation: Callable[[float, float], float], a: FloatRange, b: FloatRange, dtype: DType) -> FloatRange:
    if not (a.is_finite and b.is_finite):
        return ANYTHING
    ends = [round_float(operation(x, y), dtype) for x in (a.low, a.high) for y in (b.low, b.high)]
    return FloatRange(min(ends), max(ends), False)


def _selected(larger: bool, a: FloatRange, b: FloatRange) -> FloatRange:
    """`a > b ? a : b`, or with `<`: where a comparison fails, the second operand."""
    pick = max if larger else min
    both = FloatRange(pick(a.low, b.low), pick(a.high, b.high), b.nan)
    return both.joined(b) if a.nan else both
