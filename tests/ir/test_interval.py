"""Intervals hold every result: all operators over all small intervals by brute force, and random ones of any size."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.shares import one_in

from layoutproof.ir import semantics
from layoutproof.ir.dtype import BOOL, FLOAT32, INT8, INT64, UINT8
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Binary, Cast, Expr, IfThenElseExpr, Not, Select, Var, const, equal
from layoutproof.ir.interval import OPERATIONS, Interval, interval_of, of_type, point
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.semantics import Trap

EXACT: dict[BinaryOp, Callable[[int, int], int]] = {
    BinaryOp.ADD: operator.add,
    BinaryOp.SUB: operator.sub,
    BinaryOp.MUL: operator.mul,
    BinaryOp.FLOORDIV: semantics.floordiv,
    BinaryOp.FLOORMOD: semantics.floormod,
    BinaryOp.TRUNCDIV: semantics.truncdiv,
    BinaryOp.TRUNCMOD: semantics.truncmod,
    BinaryOp.MIN: min,
    BinaryOp.MAX: max,
    BinaryOp.BITAND: operator.and_,
    BinaryOp.BITOR: operator.or_,
    BinaryOp.BITXOR: operator.xor,
    BinaryOp.SHL: lambda a, b: a << b if 0 <= b < 64 else semantics.shift_left(a, b, INT64),
    BinaryOp.SHR: lambda a, b: semantics.shift_right(a, b, INT64),
}
# Their interval has no value too many, whatever the operands are.
TIGHT = (
    BinaryOp.ADD,
    BinaryOp.SUB,
    BinaryOp.MUL,
    BinaryOp.FLOORDIV,
    BinaryOp.TRUNCDIV,
    BinaryOp.MIN,
    BinaryOp.MAX,
    BinaryOp.SHL,
    BinaryOp.SHR,
)
DIVISIONS = (BinaryOp.FLOORDIV, BinaryOp.TRUNCDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCMOD)
REMAINDERS = (BinaryOp.FLOORMOD, BinaryOp.TRUNCMOD)
BITWISE = (BinaryOp.BITAND, BinaryOp.BITOR, BinaryOp.BITXOR)
SMALL = [Interval(low, high) for low in range(-5, 6) for high in range(low, 6)]
X, Y = Var("x"), Var("y")


def results(op: BinaryOp, a: Interval, b: Interval) -> list[int]:
    """Every result of two operands; what traps has none."""
    return list(_results(op, a, b))


def _results(op: BinaryOp, a: Interval, b: Interval) -> Iterator[int]:
    for x, y in itertools.product(range(a.low, a.high + 1), range(b.low, b.high + 1)):
        try:
            yield EXACT[op](x, y)
        except Trap:
            continue


def may_have_results(op: BinaryOp, b: Interval) -> bool:
    """Whether the operation has a result for some second operand in `b`."""
    if op in (BinaryOp.SHL, BinaryOp.SHR):
        return b.meet(Interval(0, 63)) is not None
    return b != point(0) or op not in DIVISIONS


@st.composite
def intervals(draw: st.DrawFn, reach: int = 1 << 64) -> Interval:
    """Intervals of any size around and away from zero, with the ends that matter more often than others."""
    ends = (
        st.integers(-reach, reach)
        | st.integers(-9, 9)
        | st.sampled_from([s * (1 << k) + d for k in (7, 31, 63) for s in (-1, 1) for d in (-1, 0)])
    )
    first, second = draw(ends), draw(ends)
    return Interval(min(first, second), max(first, second))


@st.composite
def intervals_with_value(draw: st.DrawFn) -> tuple[Interval, int]:
    """An interval and one of its values, often one of its ends."""
    interval = draw(intervals())
    return interval, draw(st.integers(interval.low, interval.high) | st.sampled_from([interval.low, interval.high]))


def test_every_integer_operator_has_an_interval() -> None:
    """The table lacks nothing but the division of floats."""
    assert set(OPERATIONS) == set(BinaryOp) - {BinaryOp.DIV} == set(EXACT)


@one_in(4)
@pytest.mark.parametrize("op", list(EXACT), ids=lambda op: op.name)
def test_all_small_intervals_are_sound(op: BinaryOp) -> None:
    """Every result of values of two intervals within -5 .. 5 lies in the one computed, and where claimed nothing else
    does.
    """
    for a, b in itertools.product(SMALL, repeat=2):
        found, values = OPERATIONS[op](a, b), results(op, a, b)
        assert all(v in found for v in values), f"{a} {op} {b} gives {found}, which lacks some of {sorted(set(values))}"
        if op in TIGHT and values:
            assert (found.low, found.high) == (min(values), max(values)), f"{a} {op} {b} gives {found}"


@one_in(32)
@pytest.mark.parametrize("op", list(EXACT), ids=lambda op: op.name)
@given(first=intervals_with_value(), second=intervals_with_value())
def test_any_intervals_are_sound(op: BinaryOp, first: tuple[Interval, int], second: tuple[Interval, int]) -> None:
    """The result of any two values lies in the interval computed of any two intervals around them."""
    (a, x), (b, y) = first, second
    try:
        value = EXACT[op](x, y)
    except Trap:
        return
    assert value in OPERATIONS[op](a, b)


@one_in(4)
@pytest.mark.parametrize("op", list(EXACT), ids=lambda op: op.name)
@given(a=intervals(1 << 40), b=intervals(1 << 40), data=st.data())
def test_smaller_operands_give_smaller_results(op: BinaryOp, a: Interval, b: Interval, data: st.DataObject) -> None:
    """A part of an operand's interval never gives results outside those of the whole."""
    low = data.draw(st.integers(b.low, b.high))
    part = Interval(low, data.draw(st.integers(low, b.high)))
    if may_have_results(op, part):
        assert OPERATIONS[op](a, part).within(OPERATIONS[op](a, b))


@pytest.mark.parametrize("op", REMAINDERS, ids=lambda op: op.name)
def test_remainders_by_one_number_are_tight_within_a_period(op: BinaryOp) -> None:
    """Where the quotient is one number, the remainder's interval has no value too many; elsewhere it stays below the
    divisor.
    """
    for a, divisor in itertools.product(SMALL, (-4, -3, -1, 1, 2, 3, 7)):
        found, values = OPERATIONS[op](a, point(divisor)), results(op, a, point(divisor))
        quotient = BinaryOp.FLOORDIV if op is BinaryOp.FLOORMOD else BinaryOp.TRUNCDIV
        if len(set(results(quotient, a, point(divisor)))) == 1:
            assert (found.low, found.high) == (min(values), max(values)), (a, divisor)
        assert found.magnitude < abs(divisor)


@pytest.mark.parametrize("op", BITWISE, ids=lambda op: op.name)
def test_bitwise_results_have_no_more_bits_than_the_operands(op: BinaryOp) -> None:
    """Operands of a type give results of that type, and two numbers give one number."""
    for dtype in (BOOL, INT8, UINT8, INT64):
        assert OPERATIONS[op](of_type(dtype), of_type(dtype)).fits(dtype)
    assert all(OPERATIONS[op](point(x), point(y)).is_point for x in range(-9, 9) for y in range(-9, 9))


@pytest.mark.parametrize("op", DIVISIONS, ids=lambda op: op.name)
def test_a_division_by_zero_only_is_no_constant(op: BinaryOp) -> None:
    """Nothing has a result, so any interval is right; one with a single value would invite to fold away the trap."""
    assert all(not OPERATIONS[op](a, point(0)).is_point for a in SMALL)


def test_empty_intervals_are_refused() -> None:
    """An interval has at least one value; where two have none in common, meet says so and clamp keeps the limits."""
    with pytest.raises(ValueError, match="empty"):
        Interval(1, 0)
    assert Interval(5, 9).meet(Interval(0, 3)) is None
    assert Interval(5, 9).clamp(Interval(0, 3)) == Interval(0, 3)


@given(a=intervals(), b=intervals(), value=st.integers(-(1 << 65), 1 << 65))
def test_meet_and_hull_are_those_of_sets(a: Interval, b: Interval, value: int) -> None:
    """The common values are in both, the hull has the values of either, and `within` is inclusion."""
    common, around = a.meet(b), a.hull(b)
    assert (common is not None and value in common) == (value in a and value in b)
    assert value in around or not (value in a or value in b)
    assert a.within(around) and b.within(around) and a.within(b) == (common == a)


def values_of(expr: Expr, x: Interval, y: Interval) -> list[int]:
    """Every value over the box, points that trap left out."""
    found = []
    for a, b in itertools.product(range(x.low, x.high + 1), range(y.low, y.high + 1)):
        try:
            found.append(int(evaluate(expr, {"x": a, "y": b})))
        except Trap:
            continue
    return found


def random_expr(rng: Random, depth: int) -> Expr:
    """A random integer expression over x and y; it may trap at some points."""
    if depth == 0 or rng.random() < 0.1:
        return rng.choice([X, Y, const(rng.randint(-7, 9))])
    a, b = random_expr(rng, depth - 1), random_expr(rng, depth - 1)
    forms: list[Callable[[], Expr]] = [
        lambda: Binary(rng.choice(list(EXACT)), a, b),
        lambda: Binary(rng.choice([BinaryOp.FLOORDIV, BinaryOp.FLOORMOD]), a, const(rng.randint(1, 8))),
        lambda: rng.choice([Select, IfThenElseExpr])(a < b, a, const(rng.randint(-20, 20))),
        lambda: Call("abs", (a,)),
    ]
    return rng.choice(forms)()


@one_in(7)
@pytest.mark.parametrize("seed", range(200))
def test_random_expressions_stay_in_their_interval(seed: int) -> None:
    """Every value of a random expression over a random box lies in its interval."""
    rng = Random(seed)
    low, other = rng.randint(-12, 8), rng.randint(-6, 6)
    x, y = Interval(low, low + rng.randint(0, 9)), Interval(other, other + rng.randint(0, 5))
    expr = random_expr(rng, 3)
    found = interval_of(expr, {X: x, Y: y})
    assert all(v in found for v in values_of(expr, x, y)), (expr, x, y, found)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (X // 4, Interval(0, 3)),
        (X % 4, Interval(0, 3)),
        ((X // 16) % 4, Interval(0, 0)),
        (X % 100, Interval(0, 13)),
        ((X + 16) % 32, Interval(16, 29)),
        (-X, Interval(-13, 0)),
        (Cast(INT64, X) * 3, Interval(0, 39)),
        (Cast(INT64, Cast(BOOL, X)), Interval(0, 13)),
        (Select(X < 3, X, const(20)), Interval(0, 20)),
        (IfThenElseExpr(X < 3, X, const(-5)), Interval(-5, 13)),
        (Call("abs", (X - 5,)), Interval(0, 8)),
        (Cast(INT64, Not(equal(X, 3))), Interval(0, 1)),
        (Cast(INT8, Var("f", FLOAT32)), of_type(INT8)),
    ],
)
def test_usual_expressions(expr: Expr, expected: Interval) -> None:
    """The intervals of layouts' usual index arithmetic are tight."""
    assert interval_of(expr, {X: Interval(0, 13)}) == expected


def test_variable_without_a_range_has_that_of_its_type() -> None:
    """Nothing known is the whole type."""
    assert interval_of(X, {}) == Interval(-(2**31), 2**31 - 1)


def test_floats_have_no_interval() -> None:
    """A float is refused rather than given some integers."""
    f = Var("f", FLOAT32)
    for expr in (f, f + 1.0, f / 2.0):
        with pytest.raises(ValueError, match="float32"):
            interval_of(expr, {})
