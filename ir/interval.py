"""Intervals of integers: a cheap, sound first answer to "does it fit" and "can it be zero".

Every integer expression has a type, so every interval is finite, and its ends are Python's integers. The interval of an
operation holds each result that any two operands can have; operands that trap (a division by zero, a shift by less than
0 or more than 63) have no result. The checker, passes and code generators share this table: it is part of the trusted
computing base.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from layoutproof.ir import semantics
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Binary, Cast, Compare, Expr, IfThenElseExpr, IntImm, Logical, Not, Select, Var
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.operators import BinaryOp


@dataclass(frozen=True, slots=True)
class Interval:
    """All integers from `low` to `high`, both included; never empty. Raises ValueError for `low > high`."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError(f"an empty interval: {self.low} to {self.high}")

    def __contains__(self, value: int) -> bool:
        return self.low <= value <= self.high

    @property
    def is_point(self) -> bool:
        """Whether there is one value only."""
        return self.low == self.high

    @property
    def magnitude(self) -> int:
        """The largest absolute value."""
        return max(abs(self.low), abs(self.high))

    def within(self, other: Interval) -> bool:
        """Whether every value also lies in `other`."""
        return other.low <= self.low and self.high <= other.high

    def fits(self, dtype: DType) -> bool:
        """Whether every value is one of an integer or bool type."""
        return self.within(of_type(dtype))

    def hull(self, other: Interval) -> Interval:
        """The least interval around both."""
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def meet(self, other: Interval) -> Interval | None:
        """The integers in both; None where there are none."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Interval(low, high) if low <= high else None

    def clamp(self, other: Interval) -> Interval:
        """The integers in both; `other` where there are none: the code never runs."""
        common = self.meet(other)
        return common if common is not None else other


def of_type(dtype: DType) -> Interval:
    """Every value of one lane of an integer or bool type. Raises ValueError for other types."""
    return Interval(dtype.min_int, dtype.max_int)


def point(value: int) -> Interval:
    """One value."""
    return Interval(value, value)


BOOL = Interval(0, 1)
INT32 = Interval(-(1 << 31), (1 << 31) - 1)
INT64 = Interval(-(1 << 63), (1 << 63) - 1)

Operation = Callable[[Interval, Interval], Interval]

# A shift by more traps whatever the type, since no type is wider than 64 bits.
_SHIFTS = Interval(0, 63)


def _corners(function: Callable[[int, int], int]) -> Operation:
    """For a function that is monotone in each operand: its extremes are at the ends."""

    def apply(a: Interval, b: Interval) -> Interval:
        values = [function(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
        return Interval(min(values), max(values))

    return apply


def _negated(a: Interval) -> Interval:
    return Interval(-a.high, -a.low)


def _inverted(a: Interval) -> Interval:
    """Of `~x`, which is `-x - 1`."""
    return Interval(~a.high, ~a.low)


def _around(intervals: list[Interval], otherwise: Interval) -> Interval:
    """The hull of some intervals; `otherwise` for none."""
    return Interval(min(i.low for i in intervals), max(i.high for i in intervals)) if intervals else otherwise


def _parts(b: Interval) -> list[Interval]:
    """The divisors that are not zero: those below and those above, as far as there are any."""
    return [part for part in (_below_zero(b), _above_zero(b)) if part is not None]


def _below_zero(b: Interval) -> Interval | None:
    return Interval(b.low, min(b.high, -1)) if b.low < 0 else None


def _above_zero(b: Interval) -> Interval | None:
    return Interval(max(b.low, 1), b.high) if b.high > 0 else None


def _quotient(function: Callable[[int, int], int]) -> Operation:
    """Divisors of one sign at a time, for which the quotient is monotone."""
    corners = _corners(function)

    def apply(a: Interval, b: Interval) -> Interval:
        return _around([corners(a, part) for part in _parts(b)], _without_result(a))

    return apply


def _without_result(a: Interval) -> Interval:
    """The result of a division by zero only: any interval would do; no constant can replace this one."""
    return Interval(-a.magnitude - 1, a.magnitude + 1)


def _remainder(a: Interval, b: Interval) -> Interval:
    """Of `x mod y`, rounded down, for positive divisors."""
    quotient = _corners(semantics.floordiv)(a, b)
    if quotient.is_point:  # then x mod y is x - quotient * y, wherever x and y are
        return _subtract(a, _multiply(quotient, b))
    return Interval(0, b.high - 1 if a.low < 0 else min(b.high - 1, a.high))


def _floormod(a: Interval, b: Interval) -> Interval:
    """The remainder has the divisor's sign: `x mod -y` is `-(-x mod y)`."""
    below, above = _below_zero(b), _above_zero(b)
    found = [_remainder(a, above)] if above is not None else []
    if below is not None:
        found.append(_negated(_remainder(_negated(a), _negated(below))))
    return _around(found, _without_result(a))


def _truncmod(a: Interval, b: Interval) -> Interval:
    """The remainder has the dividend's sign, and the divisor's sign does not matter."""
    sizes = [_negated(part) if part.high < 0 else part for part in _parts(b)]
    if not sizes:
        return _without_result(a)
    size = _around(sizes, b)
    found = [_remainder(Interval(max(a.low, 0), a.high), size)] if a.high >= 0 else []
    if a.low < 0:
        found.append(_negated(_remainder(_negated(Interval(a.low, min(a.high, -1))), size)))
    return _around(found, a)


def _bits(value: int) -> int:
    """The bits of a two's complement beside its sign."""
    return (value if value >= 0 else ~value).bit_length()


def _bitand(a: Interval, b: Interval) -> Interval:
    """At most an operand that is not negative; negative only where both are, within the bits of the lower ends."""
    if a.is_point and b.is_point:
        return point(a.low & b.low)
    if a.low >= 0 or b.low >= 0:
        return Interval(0, min(x.high for x in (a, b) if x.low >= 0))
    # Of two negative numbers no more than either.
    high = min(a.high, b.high) if a.high < 0 and b.high < 0 else max(a.high, b.high)
    return Interval(-(1 << max(_bits(a.low), _bits(b.low))), high)


def _bitor(a: Interval, b: Interval) -> Interval:
    return _inverted(_bitand(_inverted(a), _inverted(b)))


def _bitxor(a: Interval, b: Interval) -> Interval:
    """Within the bits of all ends; an operand that is always negative is inverted, and the result with it."""
    if a.is_point and b.is_point:
        return point(a.low ^ b.low)
    if a.high < 0:
        return _inverted(_bitxor(_inverted(a), b))
    if b.high < 0:
        return _inverted(_bitxor(a, _inverted(b)))
    bound = 1 << max(_bits(end) for end in (a.low, a.high, b.low, b.high))
    return Interval(0 if a.low >= 0 and b.low >= 0 else -bound, bound - 1)


def _shift(function: Callable[[int, int], int]) -> Operation:
    corners = _corners(function)

    def apply(a: Interval, b: Interval) -> Interval:
        return corners(a, b.clamp(_SHIFTS))

    return apply


def _subtract(a: Interval, b: Interval) -> Interval:
    return Interval(a.low - b.high, a.high - b.low)


_multiply = _corners(lambda x, y: x * y)

OPERATIONS: Mapping[BinaryOp, Operation] = {
    BinaryOp.ADD: lambda a, b: Interval(a.low + b.low, a.high + b.high),
    BinaryOp.SUB: _subtract,
    BinaryOp.MUL: _multiply,
    BinaryOp.FLOORDIV: _quotient(semantics.floordiv),
    BinaryOp.FLOORMOD: _floormod,
    BinaryOp.TRUNCDIV: _quotient(semantics.truncdiv),
    BinaryOp.TRUNCMOD: _truncmod,
    BinaryOp.MIN: lambda a, b: Interval(min(a.low, b.low), min(a.high, b.high)),
    BinaryOp.MAX: lambda a, b: Interval(max(a.low, b.low), max(a.high, b.high)),
    BinaryOp.BITAND: _bitand,
    BinaryOp.BITOR: _bitor,
    BinaryOp.BITXOR: _bitxor,
    BinaryOp.SHL: _shift(lambda x, y: x << y),
    BinaryOp.SHR: _shift(lambda x, y: x >> y),
}

Ranges = Mapping[Var, Interval]


def interval_of(expr: Expr, ranges: Ranges) -> Interval:
    """An interval that holds every value of integer or truth-valued index arithmetic, over the integers: nothing wraps.

    A variable without a range, and whatever is no index arithmetic (data above all), has the range of its type.
    Raises ValueError for an expression of another type.
    """
    function = _INTERVALS.get(type(expr))
    return function(expr, ranges) if function is not None else of_type(expr.dtype)


def _variable(expr: Var, ranges: Ranges) -> Interval:
    found = ranges.get(expr)
    return found if found is not None else of_type(expr.dtype)


def _binary(expr: Binary, ranges: Ranges) -> Interval:
    a, b = interval_of(expr.lhs, ranges), interval_of(expr.rhs, ranges)
    return OPERATIONS[expr.op](a, b)


def _choice(expr: Select | IfThenElseExpr, ranges: Ranges) -> Interval:
    return interval_of(expr.then, ranges).hull(interval_of(expr.otherwise, ranges))


def _cast(expr: Cast, ranges: Ranges) -> Interval:
    """A cast is the identity: that it fits is checked elsewhere. A cast to bool also stands for `x != 0`."""
    if expr.value.dtype.is_float:
        return of_type(expr.dtype)
    inner = interval_of(expr.value, ranges)
    return inner.hull(BOOL) if expr.dtype.is_bool else inner


def _call(expr: Call, ranges: Ranges) -> Interval:
    if expr.function != "abs" or not expr.dtype.is_integer:
        return of_type(expr.dtype)
    a = interval_of(expr.arguments[0], ranges)
    return Interval(0 if 0 in a else min(abs(a.low), abs(a.high)), a.magnitude)


_INTERVALS: Mapping[type[Expr], Callable[[Any, Ranges], Interval]] = {
    IntImm: lambda expr, ranges: point(expr.value),
    Var: _variable,
    Binary: _binary,
    Compare: lambda expr, ranges: BOOL,
    Logical: lambda expr, ranges: BOOL,
    Not: lambda expr, ranges: BOOL,
    Select: _choice,
    IfThenElseExpr: _choice,
    Cast: _cast,
    Call: _call,
}
