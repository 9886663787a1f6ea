"""Integers computed through floats (`int32(floor(float32(i)*0.5))`), as index arithmetic with the same values.

A formula is taken only after it and the computation were evaluated at every value that the operand can take. So this
rests on no law of floats, only on operations whose results are fixed bit for bit; or known up to a small error, and
then rounded to an integer from which they are further away. Part of the trusted computing base.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.dtype import FLOAT32, FLOAT64, DType
from layoutproof.ir.expr import (
    Binary,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Select,
    Var,
    binary,
    const,
)
from layoutproof.ir.interval import Interval, interval_of
from layoutproof.ir.intrinsics import Call, Limit
from layoutproof.ir.node import FloatToInteger, Node, Steps, trampoline
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import Kept, PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import Block, For, Let, Stmt
from layoutproof.ir.visit import children, holds_any, kinds_in, map_children, mapped, nodes_of, walk
from layoutproof.verify.values.numbers import NotEvaluated, Points, array_of, exact_function

_MOST_POINTS = 4096
_MOST_DIVISOR = 256
# With a divisor and a slope of this magnitude, products stay far from the bounds of 64 bits.
_LARGEST = 1 << 24

Ranges = Mapping[Var, Interval]
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Numbers = NDArray[np.generic]


def rewrite_in_integers(rewrite: Rewrite) -> Rewrite:
    """The rewrite between both programs `in_integers`: whatever holds of it holds of the given one."""
    old, new = in_integers(rewrite.old), in_integers(rewrite.new)
    return rewrite if old is rewrite.old and new is rewrite.new else replace(rewrite, old=old, new=new)


def in_integers(func: PrimFunc) -> PrimFunc:
    """The function with such integers replaced where a formula is found; it does the same, step by step, with the same
    faults. The same object if there are none.
    """
    if FloatToInteger not in kinds_in(func.body):
        return func
    return _KNOWN.get(func, (), lambda: _replaced(func))


_KNOWN: Kept[PrimFunc] = Kept(64)


def _is_conversion(node: Node) -> TypeGuard[Cast]:
    return isinstance(node, Cast) and FloatToInteger in node._marks()


def _replaced(func: PrimFunc) -> PrimFunc:
    body = trampoline(lambda given: _inside(*given), (func.body, {}))
    assert isinstance(body, Stmt)
    return func if body is func.body else replace(func, body=body)


def _inside(node: Node, ranges: Ranges | None) -> Node | Steps[tuple[Node, Ranges | None], Node]:
    """The node over formulas, where `ranges` holds what surrounding loops, blocks and lets bind; as it is without."""
    if ranges is None:
        return node
    match node:
        case For(var=var):
            start, extent = interval_of(node.start, ranges), interval_of(node.extent, ranges)
            counted = Interval(start.low, start.high + extent.high - 1) if extent.high > 0 else None
            inside = _with(ranges, var, counted)
        case Let(var=var, value=value):
            found = _formulas(value, ranges)
            inside = _bound(ranges, var, found, ranges)
            return mapped(node, lambda child: (found, None) if child is value else (child, inside))
        case Block(iter_vars=iter_vars):
            inside = ranges
            for each in iter_vars:
                inside = _bound(inside, each.var, each.binding, ranges)
        case Stmt():
            inside = ranges
        case _:
            return _formulas(node, ranges)
    return mapped(node, lambda child: (child, inside))


def _formulas(node: Node, ranges: Ranges) -> Node:
    made = map_children(node, lambda child: _formulas(child, ranges))
    if isinstance(made, Compare) and made != node and not _stays_in_types(made, ranges):
        return node
    return _formula_of(made, ranges) if _is_conversion(made) else made


def _stays_in_types(compared: Compare, ranges: Ranges) -> bool:
    """Whether no integer in a comparison leaves its type: what is computed from a conversion wraps there, and what is
    computed from a formula is index arithmetic.
    """
    if holds_any(compared, BufferLoad):
        return True
    parts = (node for node in walk(compared) if isinstance(node, Expr) and node.dtype.is_integer)
    return all(interval_of(part, ranges).fits(part.dtype) for part in parts)


def _bound(inside: Ranges, var: Var, value: Node, ranges: Ranges) -> Ranges:
    """`inside` with the range of what `var` is bound to, which stands where `ranges` hold."""
    certain = isinstance(value, Expr) and var.dtype.is_integer and is_certain(value, ranges)
    return _with(inside, var, interval_of(value, ranges) if certain and isinstance(value, Expr) else None)


def _with(ranges: Ranges, var: Var, range_: Interval | None) -> Ranges:
    """The ranges inside a binder: without one, not that of an outer variable of the same name."""
    rest = {known: each for known, each in ranges.items() if known != var}
    return rest if range_ is None else {**rest, var: range_}


_CLOSED = frozenset((BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.MIN, BinaryOp.MAX))
_DIVISIONS = frozenset((BinaryOp.FLOORDIV, BinaryOp.FLOORMOD))


def is_certain(expr: Expr, ranges: Ranges) -> bool:
    """Whether an integer is defined, never leaves its type, nor does any part of it, and traps nowhere: a formula may
    do without it.
    """
    match expr:
        case Var():
            return expr in ranges
        case IntImm():
            return True
        case Cast(value=value):
            inner = value.dtype.is_integer and is_certain(value, ranges)
        case Binary(op=op, lhs=lhs, rhs=rhs):
            divides = op in _DIVISIONS and isinstance(rhs, IntImm) and rhs.value > 0
            inner = (op in _CLOSED or divides) and is_certain(lhs, ranges) and is_certain(rhs, ranges)
        case _:
            return False
    return inner and expr.dtype.is_integer and interval_of(expr, ranges).fits(expr.dtype)


def _formula_of(expr: Cast, ranges: Ranges) -> Expr:
    """The formula for one conversion to an integer, else itself."""
    operands = set(_operands(expr.value))
    if not operands:
        values = _values(expr, Var("nothing@", expr.dtype), np.zeros(1, np.int64))
        return expr if values is None else const(int(values[0]), expr.dtype)
    operand = next(iter(operands), None)
    if len(operands) != 1 or operand is None or not is_certain(operand, ranges):
        return expr
    range_ = interval_of(operand, ranges)
    if range_.high - range_.low >= _MOST_POINTS or not range_.fits(expr.dtype) or range_.magnitude > _LARGEST:
        return expr
    points = np.arange(range_.low, range_.high + 1, dtype=np.int64)
    values = _values(expr, operand, points)
    found = None if values is None else _fitting(points, values)
    if found is None or not found.fits(points, expr.dtype):
        return expr
    return found.of(operand if operand.dtype == expr.dtype else Cast(expr.dtype, operand))


def _operands(expr: Node) -> Iterator[Expr]:
    """The integers from which a float is computed, and whatever has no value that is fixed bit for bit, which is no
    certain integer.
    """
    match expr:
        case IntImm() | FloatImm() | Limit():
            pass
        case Cast(value=value) if value.dtype.is_integer:
            if not isinstance(value, IntImm):
                yield value
        case Binary() | Compare() | Logical() | Not() | Select() | IfThenElseExpr() | Cast():
            for child in children(expr):
                yield from _operands(child)
        case Call(arguments=arguments) if expr.function in _NEARLY or exact_function(expr.function, expr.dtype):
            for argument in arguments:
                yield from _operands(argument)
        case Expr():
            yield expr
        case _:
            pass


_NEARLY: Mapping[str, Callable[[Floats], Floats]] = {"log2": np.log2, "log": np.log, "log10": np.log10, "exp": np.exp}
_ERRORS = {FLOAT64: 2.0**-40, FLOAT32: 2.0**-16}
"""Relative and absolute bounds, far above the error of any library."""

_ROUNDED: Mapping[str, Callable[[Floats], Floats]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
}


def _values(expr: Cast, operand: Expr, points: Integers) -> Integers | None:
    """The values at all points; None if some have none, or they are large."""
    outer: Callable[[Floats], Floats] = np.trunc
    call = expr.value
    if isinstance(call, Call) and call.function in _ROUNDED:
        outer, call = _ROUNDED[call.function], call.arguments[0]
    if isinstance(call, Call) and call.function in _NEARLY and call.dtype in _ERRORS:
        (argument,) = call.arguments
        found = None if _is_near(argument) else _evaluated(argument, operand, points)
        return None if found is None else _rounded(outer, _NEARLY[call.function], found, _ERRORS[call.dtype])
    if _is_near(expr):
        return None
    found = _evaluated(expr, operand, points)
    return None if found is None or np.abs(found.astype(np.float64)).max() > _LARGEST else found.astype(np.int64)


def _is_near(expr: Expr) -> bool:
    """Whether some part of an expression is known up to an error only."""
    return any(call.function in _NEARLY for call in nodes_of(expr, Call))


def _rounded(
    outer: Callable[[Floats], Floats], inner: Callable[[Floats], Floats], at: Numbers, error: float
) -> Integers | None:
    """A function's values, rounded to integers; None if some are too close to where they would be others."""
    with np.errstate(all="ignore"):
        values = inner(at.astype(np.float64))
        ends = [outer(values + sign * error * (np.abs(values) + 1)) for sign in (-1, 1)]
    if not np.isfinite(values).all() or np.abs(values).max() > _LARGEST or not np.array_equal(ends[0], ends[1]):
        return None
    return ends[0].astype(np.int64)


def _evaluated(expr: Expr, operand: Expr, points: Integers) -> Numbers | None:
    """What an expression is at all points of its operand; None if it has no value at some."""
    var = Var("operand@", operand.dtype)

    def visit(node: Node) -> Node:
        return var if node == operand else map_children(node, visit)

    said = visit(expr)
    assert isinstance(said, Expr)
    table = Points({var.name: array_of(points.tolist(), var.dtype)}, len(points))
    try:
        found = table.value(said)
    except NotEvaluated:
        return None
    return None if table.trapped.any() else found


@dataclass(frozen=True, slots=True)
class _Formula:
    """`(factor*x + offset)//divisor`, kept between `low` and `high` if these are given."""

    factor: int
    offset: int
    divisor: int
    low: int | None = None
    high: int | None = None

    def at(self, points: Integers) -> Integers:
        """Its values."""
        found = (self.factor * points + self.offset) // self.divisor
        return found if self.low is None else np.clip(found, self.low, self.high)

    def fits(self, points: Integers, dtype: DType) -> bool:
        """Whether no part of it leaves a type at these points."""
        scaled = self.factor * points
        parts = (scaled, scaled + self.offset, self.at(points), np.array([self.factor, self.offset, self.divisor]))
        return all(dtype.min_int <= int(part.min()) and int(part.max()) <= dtype.max_int for part in parts)

    def of(self, operand: Expr) -> Expr:
        """It as an expression."""
        if self.factor == 0:
            found: Expr = const(self.offset // self.divisor, operand.dtype)
        else:
            found = operand if self.factor == 1 else operand * self.factor
            found = found + self.offset if self.offset != 0 else found
            found = found // self.divisor if self.divisor != 1 else found
        if self.low is None or self.high is None:
            return found
        return binary(BinaryOp.MAX, binary(BinaryOp.MIN, found, self.high), self.low)


def _fitting(points: Integers, values: Integers) -> _Formula | None:
    """A formula with these values at all these points; None if there is none of the form."""
    found = _line(points, values)
    if found is not None:
        return found
    # Clamped at both ends: what lies between decides the line.
    low, high = int(values.min()), int(values.max())
    inner = (values > low) & (values < high)
    found = _line(points[inner], values[inner]) if inner.any() else None
    if found is None:
        return None
    clamped = replace(found, low=low, high=high)
    return clamped if np.array_equal(clamped.at(points), values) else None


def _line(points: Integers, values: Integers) -> _Formula | None:
    """The formula with the least divisor."""
    reach = int(points[-1] - points[0])
    for divisor in range(1, _MOST_DIVISOR + 1):
        slope = int(values[-1] - values[0]) * divisor // reach if reach else 0
        for factor in range(slope - 1, slope + 3) if reach else (0,):
            # (factor*x + offset)//divisor == v exactly if 0 <= factor*x + offset - divisor*v < divisor.
            least = divisor * values - factor * points
            offset = int(least.max())
            if offset < int(least.min()) + divisor:
                return _Formula(factor, offset, divisor)
    return None
