"""Interval arithmetic on expressions, which is written into a program that the interpreter runs.

Two forms. *Tight*: both ends have the value's own type, and operations on them are the program's, since rounding is
monotonic; an exact value has equal ends. *Loose*, where sums may be regrouped: float64 ends of the exact result, with a
bound on the magnitudes of all terms (`size`) and the number of roundings (`count`), in any order. Where a step on the
way may overflow or underflow in the value's own type, in one order and not in another, the ends are moved apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from layoutproof.ir.dtype import FLOAT32, FLOAT64, DType
from layoutproof.ir.expr import Binary, Cast, Compare, Expr, Logical, Select, const
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.semantics import float_format, max_finite
from layoutproof.lowering.runtime.inexact import Bound, Inexact

Bind = Callable[[Expr], Expr]
_RISING = frozenset("exp exp2 log log2 log10 sqrt tanh sigmoid erf sinh atan floor ceil round trunc".split())
_PAIRWISE = frozenset({"fmax", "fmin", "maximum", "minimum"})
_UNROUNDED = _PAIRWISE | frozenset({"abs", "floor", "ceil", "round", "trunc"})
_POSITIVE = frozenset({"exp", "exp2", "sigmoid", "sqrt", "rsqrt", "cosh"})
_INFINITY = float("inf")


@dataclass(frozen=True, slots=True)
class Ends:
    """A value of type `dtype` between `low` and `high`; `size`, `count` and `reach` in the loose form.

    `reach` is of products and quotients, 0 of others: how far from 1, in powers of two, a part of one may be, in any
    order and by reciprocals.
    """

    dtype: DType
    low: Expr
    high: Expr
    size: Expr | None = None
    count: Expr | None = None
    reach: Expr | None = None

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The expressions that are stored."""
        return (
            (self.low, self.high)
            if self.size is None or self.count is None or self.reach is None
            else (self.low, self.high, self.size, self.count, self.reach)
        )

    @property
    def is_known(self) -> bool:
        """Whether it is one number, perhaps NaN. A NaN end of other values means that they may be anything."""
        return self.low is self.high


def unit(dtype: DType) -> float:
    """The distance from 1 to the next number of a type."""
    return float(2.0 ** (1 - float_format(dtype.element)[0]))


def smallest(dtype: DType, *, normal: bool) -> float:
    """The least positive number of a type, or the least normal one."""
    precision, emin, _ = float_format(dtype.element)
    return float(2.0**emin if normal else 2.0 ** (emin - precision + 1))


def _largest_part(dtype: DType) -> float:
    """How far from 1, in powers of two, part of a product may be; sums of as many as 2^24 such parts are in range."""
    return float(-float_format(dtype.element)[1] - 25)


def _add(a: Expr, b: Expr) -> Expr:
    return Binary(BinaryOp.ADD, a, b)


def _sub(a: Expr, b: Expr) -> Expr:
    return Binary(BinaryOp.SUB, a, b)


def _mul(a: Expr, b: Expr) -> Expr:
    return Binary(BinaryOp.MUL, a, b)


def _least(*values: Expr) -> Expr:
    """The least; NaN if one is."""
    found = values[0]
    for value in values[1:]:
        found = Call("minimum", (found, value))
    return found


def _most(*values: Expr) -> Expr:
    found = values[0]
    for value in values[1:]:
        found = Call("maximum", (found, value))
    return found


def _magnitude(value: Expr) -> Expr:
    return Call("abs", (value,))


def _is(op: CompareOp, a: Expr, value: float) -> Expr:
    return Compare(op, a, const(value, a.dtype))


def open_end(*values: Ends) -> Expr:
    """Whether one of the ends is NaN."""
    return _any_nan(*(end for value in values for end in (value.low, value.high)))


def _zero_by_infinity(a: Ends, b: Ends) -> Expr:
    """Whether one may be 0 and the other infinite, which the corners do not show."""
    found = []
    for zero, large in ((a, b), (b, a)):
        around = Logical(LogicalOp.AND, _is(CompareOp.LE, zero.low, 0.0), _is(CompareOp.GE, zero.high, 0.0))
        ends = [_is(CompareOp.EQ, _magnitude(end), _INFINITY) for end in (large.low, large.high)]
        found.append(Logical(LogicalOp.AND, around, Logical(LogicalOp.OR, *ends)))
    return Logical(LogicalOp.OR, *found)


def _any_nan(*values: Expr) -> Expr:
    """Whether one of them is NaN."""
    first, *others = (Compare(CompareOp.NE, value, value) for value in values)
    found: Expr = first
    for other in others:
        found = Logical(LogicalOp.OR, found, other)
    return found


class Arithmetic:
    """Operations on intervals; `bind` names an expression that is used more than once."""

    def __init__(self, inexact: Inexact, bind: Bind) -> None:
        self._inexact = inexact
        self._bind = bind
        self.loose = inexact.regroups

    def stored_type(self, dtype: DType) -> DType:
        """The type of the parts of a value."""
        return FLOAT64.with_lanes(dtype.lanes) if self.loose else dtype

    def point(self, value: Expr) -> Ends:
        """An exact value."""
        if not self.loose:
            known = self._bind(value)
            return Ends(value.dtype, known, known)
        wide = self._bind(self._wide(value))
        zero = const(0.0, wide.dtype)
        return Ends(value.dtype, wide, wide, self._bind(_magnitude(wide)), zero, zero)

    def made(self, dtype: DType, parts: tuple[Expr, ...]) -> Ends:
        """A value from its parts."""
        return Ends(dtype, *(self._bind(part) for part in parts))

    def taken(self, a: Ends) -> Ends:
        """A value as an operation takes it: a kernel that flushes may take zero for a subnormal one."""
        if not self._inexact.flushes or a.dtype.bits > 32:
            return a
        low, high = self._flushed(a.low, a.high)
        return Ends(a.dtype, low, high, a.size, a.count, a.reach)

    def roundings(self, dtype: DType, count: Expr, size: Expr) -> Expr:
        """How far so many roundings in any order may lead, of terms whose magnitudes make up `size`."""
        far = _mul(_mul(count, const(unit(dtype), count.dtype)), size)
        if not self._inexact.flushes or dtype.bits > 32:
            return far
        return _add(far, _mul(count, const(smallest(FLOAT32, normal=True), count.dtype)))

    def _wide(self, value: Expr) -> Expr:
        wanted = FLOAT64.with_lanes(value.dtype.lanes)
        return value if value.dtype == wanted else Cast(wanted, value)

    def settled(self, a: Ends) -> Ends:
        """The same with the roundings so far included."""
        if a.size is None or a.count is None:
            return a
        slack = self._bind(self.roundings(a.dtype, a.count, a.size))
        return replace(self._hull(a.dtype, _sub(a.low, slack), _add(a.high, slack), 0), reach=a.reach)

    def _hull(self, dtype: DType, low: Expr, high: Expr, roundings: int) -> Ends:
        """A result from its ends, after as many roundings."""
        low, high = self._bind(low), self._bind(high)
        if self.loose and roundings > 0:
            low, high = self._ranged(dtype, low, high)
        if self._inexact.flushes and dtype.bits <= 32:
            low, high = self._flushed(low, high)
        if not self.loose:
            return Ends(dtype, low, high)
        size = self._bind(_most(_magnitude(low), _magnitude(high)))
        return Ends(dtype, low, high, size, const(float(roundings), low.dtype), const(0.0, low.dtype))

    def _span(self, a: Ends) -> Expr:
        """How far from 1 a value or a part of it may be; near zero only the larger values count."""
        found, one, zero = [a.reach] if a.reach is not None else [], const(1.0, a.low.dtype), const(0.0, a.low.dtype)
        around = Logical(LogicalOp.AND, _is(CompareOp.LE, a.low, 0.0), _is(CompareOp.GE, a.high, 0.0))
        for end in (a.low, a.high):
            size = self._bind(_magnitude(end))
            number = Logical(LogicalOp.AND, _is(CompareOp.GT, size, 0.0), _is(CompareOp.LT, size, _INFINITY))
            far = self._bind(Call("log2", (Select(number, size, one),)))
            found.append(Select(around, _most(far, zero), _magnitude(far)))
        return self._bind(_most(*found))

    def _regrouped(self, a: Ends, b: Ends, low: Expr, high: Expr, *, divides: bool = False) -> Ends:
        """A product or quotient, which may be anything where part of it, computed first, may leave the type's range."""
        if a.reach is None or b.reach is None:
            return self._hull(a.dtype, low, high, 3)
        divisor = self._span(b)
        reach = self._bind(_add(self._span(a), divisor))
        if a.dtype.bits >= 32:  # narrower ones are rounded after each operation
            limit, exponents = _largest_part(a.dtype), -float_format(a.dtype.element)[1]
            again = Logical(LogicalOp.OR, _is(CompareOp.GT, a.reach, 0.0), _is(CompareOp.GT, b.reach, 0.0))
            found: Expr = Logical(LogicalOp.AND, again, _is(CompareOp.GT, reach, limit))
            if divides:
                found = Logical(LogicalOp.OR, found, _is(CompareOp.GT, divisor, exponents - 1.0))
            low, high = self._unless(found, low, high)
        return replace(self._hull(a.dtype, low, high, 4 if divides else 3), reach=reach)

    def _ranged(self, dtype: DType, low: Expr, high: Expr) -> tuple[Expr, Expr]:
        """Ends between which a result is with and without the overflow or underflow of its own type: which of them a
        kernel has depends on the order.
        """
        normal, step = smallest(dtype, normal=True), const(smallest(dtype, normal=False), low.dtype)
        greatest, infinity = max_finite(dtype.element), const(_INFINITY, low.dtype)
        zero, most = const(0.0, low.dtype), const(greatest, low.dtype)
        small = [_is(CompareOp.LT, _magnitude(end), normal) for end in (low, high)]
        if dtype.bits < 64:  # float64 ends do not underflow to zero where the type is narrower: a zero is one
            small = [
                Logical(LogicalOp.AND, each, _is(CompareOp.NE, end, 0.0))
                for each, end in zip(small, (low, high), strict=True)
            ]
        down: Expr = Select(small[0], _sub(low, step), low)
        down = Select(_is(CompareOp.LT, low, -greatest), _sub(zero, infinity), down)
        up: Expr = Select(small[1], _add(high, step), high)
        up = Select(_is(CompareOp.GT, high, greatest), infinity, up)
        return (
            self._bind(Select(_is(CompareOp.EQ, low, _INFINITY), most, down)),
            self._bind(Select(_is(CompareOp.EQ, high, -_INFINITY), _sub(zero, most), up)),
        )

    def _flushed(self, low: Expr, high: Expr) -> tuple[Expr, Expr]:
        least = smallest(FLOAT32, normal=True)
        zero, step = const(0.0, low.dtype), const(least, low.dtype)
        near = [
            Logical(LogicalOp.AND, _is(CompareOp.NE, end, 0.0), _is(CompareOp.LT, _magnitude(end), least))
            for end in (low, high)
        ]
        down = Select(near[0], Select(_is(CompareOp.LT, low, 0.0), _sub(zero, step), zero), low)
        up = Select(near[1], Select(_is(CompareOp.GT, high, 0.0), step, zero), high)
        return self._bind(down), self._bind(up)

    def binary(self, op: BinaryOp, a: Ends, b: Ends) -> Ends:
        """`a op b`."""
        match op:
            case BinaryOp.ADD | BinaryOp.SUB:
                return self._sum(op, a, b)
            case BinaryOp.MUL:
                return self._product(self.settled(a), self.settled(b))
            case BinaryOp.DIV:
                return self._quotient(self.settled(a), self.settled(b))
            case BinaryOp.MIN | BinaryOp.MAX:
                a, b = self.settled(a), self.settled(b)
                low: Expr = Binary(op, a.low, b.low)
                high: Expr = Binary(op, a.high, b.high)
                if not (a.is_known and b.is_known):
                    low, high = self._unless(open_end(a, b), low, high)
                return self._hull(a.dtype, low, high, 0)
            case _:
                raise TypeError(f"{op} on {a.dtype}")

    def _sum(self, op: BinaryOp, a: Ends, b: Ends) -> Ends:
        first, last = (b.low, b.high) if op is BinaryOp.ADD else (b.high, b.low)
        low: Expr = Binary(op, a.low, first)
        high: Expr = Binary(op, a.high, last)
        if not (a.is_known and b.is_known):
            # Infinities of two signs may meet where both ends are finite, or one infinity.
            mixed = [self._bind(Binary(op, a.low, last)), self._bind(Binary(op, a.high, first))]
            low, high = self._unless(_any_nan(*mixed), low, high)
        if a.size is None or b.size is None or a.count is None or b.count is None or a.reach is None or b.reach is None:
            return self._hull(a.dtype, low, high, 0)
        count = _add(_add(a.count, b.count), const(1.0, low.dtype))
        size, greatest = self._bind(_add(a.size, b.size)), max_finite(a.dtype.element)
        # Finite terms: whether some of them, added first, are past the largest number depends on the order.
        found: Expr = _is(CompareOp.GT, size, greatest)
        for end in (a.low, a.high, b.low, b.high):
            found = Logical(LogicalOp.AND, found, _is(CompareOp.LT, _magnitude(end), _INFINITY))
        reach = self._bind(_most(a.reach, b.reach))
        if a.dtype.bits >= 32:  # products with a common factor: the others may be added first
            both = Logical(LogicalOp.AND, _is(CompareOp.GT, a.reach, 0.0), _is(CompareOp.GT, b.reach, 0.0))
            both = Logical(LogicalOp.AND, both, _is(CompareOp.GT, reach, _largest_part(a.dtype)))
            found = Logical(LogicalOp.OR, found, both)
        low, high = self._unless(found, low, high)
        return self.made(a.dtype, (low, high, size, count, reach))

    def _unless(self, condition: Expr, low: Expr, high: Expr) -> tuple[Expr, Expr]:
        """The ends, or NaN for both where a NaN may be among the results."""
        condition, anything = self._bind(condition), const(float("nan"), low.dtype)
        return self._bind(Select(condition, anything, low)), self._bind(Select(condition, anything, high))

    def _product(self, a: Ends, b: Ends) -> Ends:
        corners = [self._bind(_mul(x, y)) for x in (a.low, a.high) for y in (b.low, b.high)]
        low, high = self._unless(_zero_by_infinity(a, b), _least(*corners), _most(*corners))
        if a.low is b.low and a.high is b.high:
            zero = const(0.0, low.dtype)
            around = Logical(LogicalOp.AND, _is(CompareOp.LT, a.low, 0.0), _is(CompareOp.GT, a.high, 0.0))
            low = Select(around, zero, _least(corners[0], corners[3]))
        return self._regrouped(a, b, low, high)

    def _quotient(self, a: Ends, b: Ends) -> Ends:
        corners = [self._bind(Binary(BinaryOp.DIV, x, y)) for x in (a.low, a.high) for y in (b.low, b.high)]
        certain = Logical(LogicalOp.AND, Compare(CompareOp.EQ, a.low, a.high), Compare(CompareOp.EQ, b.low, b.high))
        around = Logical(LogicalOp.AND, _is(CompareOp.LE, b.low, 0.0), _is(CompareOp.GE, b.high, 0.0))
        # In another order a zero may have the other sign.
        pole = self._bind(around if self.loose else Select(certain, const(False, around.dtype), around))
        anything = const(float("nan"), corners[0].dtype)  # 0 / 0 may be among the quotients
        low, high = (self._bind(Select(pole, anything, end)) for end in (_least(*corners), _most(*corners)))
        if self._inexact.division and a.dtype.bits <= 32:
            low, high = self._widened(a.dtype, low, high, Bound(self._inexact.division), a)
        return self._regrouped(a, b, low, high, divides=True)

    def choose(self, condition: Expr, a: Ends, b: Ends) -> Ends:
        """One of two values, by a known condition."""
        return self.made(a.dtype, tuple(Select(condition, x, y) for x, y in zip(a.parts, b.parts, strict=True)))

    def either(self, certain: Expr, possible: Expr, a: Ends, b: Ends) -> Ends:
        """`a` where that is certain, `b` where `a` is impossible, else anything between the two."""
        a, b = self.settled(a), self.settled(b)
        low = Select(certain, a.low, Select(possible, _least(a.low, b.low), b.low))
        high = Select(certain, a.high, Select(possible, _most(a.high, b.high), b.high))
        return self._hull(a.dtype, low, high, 0)

    def cast(self, dtype: DType, a: Ends) -> Ends:
        """Converted to another float type."""
        a = self.settled(a)
        low, high = Cast(dtype, a.low), Cast(dtype, a.high)
        return (
            self._hull(dtype, self._wide(low), self._wide(high), 0) if self.loose else self._hull(dtype, low, high, 0)
        )

    def is_inexact(self, call: Call) -> bool:
        """Whether a kernel may compute a function inexactly."""
        return call.dtype.is_float and self._inexact.bound(call) is not None

    def call(self, call: Call, arguments: list[Ends]) -> Ends:
        """A math function."""
        arguments = [self.settled(a) for a in arguments]
        dtype, bound = call.dtype, self._inexact.bound(call)
        if bound is not None and dtype.bits < 32 and not self.loose:
            # computed in float32, and rounded once more
            wide = FLOAT32.with_lanes(dtype.lanes)
            return self.cast(dtype, self._applied(call.function, bound, wide, [self.cast(wide, a) for a in arguments]))
        return self._applied(call.function, bound, dtype, arguments)

    def _applied(self, name: str, bound: Bound | None, dtype: DType, arguments: list[Ends]) -> Ends:
        low, high = self._image(name, arguments)
        low, high = self._bind(low), self._bind(high)
        if bound is not None:
            low, high = self._widened(dtype, low, high, bound, arguments[0])
            if name in _POSITIVE:
                # The reciprocal root of -0 is an infinity.
                below = Logical(LogicalOp.AND, _is(CompareOp.LT, low, 0.0), _is(CompareOp.GT, low, -_INFINITY))
                low = self._bind(Select(below, const(0.0, low.dtype), low))
        return self._hull(dtype, low, high, 0 if name in _UNROUNDED else 1)

    def _image(self, name: str, arguments: list[Ends]) -> tuple[Expr, Expr]:
        """The range of a function, before the kernel's error."""
        first = arguments[0]

        def f(*at: Expr) -> Expr:
            return Call(name, at)

        if name in _RISING:
            return f(first.low), f(first.high)
        if name in _PAIRWISE:
            last = arguments[1]
            ends = f(first.low, last.low), f(first.high, last.high)
            # `fmax` and `fmin` pass over a NaN, which may stand for any value.
            return ends if first.is_known and last.is_known else self._unless(open_end(first, last), *ends)
        if name == "rsqrt" and first.is_known:
            return f(first.low), f(first.low)
        if name == "rsqrt":  # an end that is 0 may stand for both zeros
            low, high, zero = f(first.high), f(first.low), _is(CompareOp.EQ, first.low, 0.0)
            return Select(zero, const(-_INFINITY, low.dtype), low), Select(zero, const(_INFINITY, high.dtype), high)
        if name in ("abs", "cosh"):
            around = Logical(LogicalOp.AND, _is(CompareOp.LT, first.low, 0.0), _is(CompareOp.GT, first.high, 0.0))
            a, b = self._bind(f(first.low)), self._bind(f(first.high))
            return Select(around, const(0.0 if name == "abs" else 1.0, a.dtype), _least(a, b)), _most(a, b)
        if name in ("sin", "cos"):
            apart, zero = self._bind(_sub(first.high, first.low)), const(0.0, first.low.dtype)
            more = _add(_mul(apart, const(1.0 + 2.0**-6, apart.dtype)), const(4 * unit(apart.dtype), apart.dtype))
            width = self._bind(Select(_is(CompareOp.GT, apart, 0.0), more, zero))
            a, b = self._bind(f(first.low)), self._bind(f(first.high))
            return _sub(_least(a, b), width), _add(_most(a, b), width)
        if name == "fma":
            last, added = arguments[1:]
            products = [(x, y) for x in (first.low, first.high) for y in (last.low, last.high)]
            corners = [self._bind(f(x, y, z)) for x, y in products for z in (added.low, added.high)]
            return self._unless(_zero_by_infinity(first, last), _least(*corners), _most(*corners))
        return self._at_points(name, arguments)

    def _at_points(self, name: str, arguments: list[Ends]) -> tuple[Expr, Expr]:
        """A function with values only at known arguments (`tan`, `pow`): anything elsewhere, NaN included."""
        value = self._bind(Call(name, tuple(a.low for a in arguments)))
        known: Expr = Compare(CompareOp.EQ, arguments[0].low, arguments[0].high)
        for other in arguments[1:]:
            known = Logical(LogicalOp.AND, known, Compare(CompareOp.EQ, other.low, other.high))
        known = self._bind(known)
        found = Select(known, value, const(float("nan"), value.dtype))
        return self._bind(found), self._bind(found)  # two names: it is not a number that is known

    def _widened(self, dtype: DType, low: Expr, high: Expr, bound: Bound, argument: Ends) -> tuple[Expr, Expr]:
        """Ends moved apart by an error bound, and one ulp more: the bound is on the distance from the exact value."""
        if bound.ulps == _INFINITY:
            return const(-_INFINITY, low.dtype), const(_INFINITY, high.dtype)
        computed = dtype if dtype.bits == 64 else FLOAT32
        wide = [self._bind(self._wide(end)) for end in (low, high)]
        ulps: Expr = const(bound.ulps + 1.0, wide[0].dtype)
        if bound.grows:
            reach = _most(_magnitude(self._wide(argument.low)), _magnitude(self._wide(argument.high)))
            ulps = self._bind(_add(ulps, _mul(reach, const(bound.grows, reach.dtype))))
        floor = max(bound.absolute, smallest(computed, normal=self._inexact.flushes) * (bound.ulps + 1.0))
        moved = [
            _most(_mul(_mul(_magnitude(end), ulps), const(unit(computed), end.dtype)), const(floor, end.dtype))
            for end in wide
        ]
        greatest = max_finite(dtype.element)
        ends = []
        for end, move, step in zip(wide, moved, (_sub, _add), strict=True):
            inward = _is(CompareOp.EQ, end, _INFINITY if step is _sub else -_INFINITY)
            limit = const(greatest if step is _sub else -greatest, end.dtype)
            outward = _is(CompareOp.EQ, end, -_INFINITY if step is _sub else _INFINITY)
            ends.append(self._bind(Select(inward, limit, Select(outward, end, step(end, self._bind(move))))))
        back = [end if low.dtype == end.dtype else Cast(low.dtype, end) for end in ends]
        return self._bind(back[0]), self._bind(back[1])
