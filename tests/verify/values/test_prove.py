"""What is proved and refuted of values, with the least fast-math assumptions; the cases that the padding of reductions
rests on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from tests.verify.values.asking import prove_invariant, prove_no_op, prove_same

from layoutproof.ir.buffer import BufferLoad, make_buffer
from layoutproof.ir.dtype import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT8, INT32, DType
from layoutproof.ir.expr import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IfThenElseExpr,
    IntImm,
    Select,
    Var,
    const,
    equal,
)
from layoutproof.ir.intrinsics import Call, Limit, LimitKind, OpaqueCall, Undef
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.verify.values.fast_math import ALL, IEEE, FastMath, FastMathSet, names_of, smallest_first
from layoutproof.verify.values.prover import (
    StoredValue,
    ValueProver,
    candidates,
)
from layoutproof.verify.values.question import (
    AtLeast,
    AtMost,
    Given,
    Holds,
    Identical,
    NotInfinite,
    NotNan,
    NotNegativeZero,
    Question,
    placeholder,
)
from layoutproof.verify.values.solving import DEFAULT
from layoutproof.verify.verdict.verdict import Status

F = FLOAT32
acc, a, v, w, x, y, z = (Var(name, F) for name in ("acc", "a", "v", "w", "x", "y", "z"))
ZERO, ONE = FloatImm(0.0, F), FloatImm(1.0, F)
PAD_ZERO = Given(a, Identical(ZERO))
CLEAN = Given(acc, NotNegativeZero())
NNAN, NSZ, REASSOC = (frozenset({flag}) for flag in (FastMath.NNAN, FastMath.NSZ, FastMath.REASSOC))


def call(function: str, *arguments: Expr) -> Call:
    """A math function's call."""
    return Call(function, arguments)


def test_convolution_padding() -> None:
    """A product with padding 0.0 leaves a clean accumulator alone: with `nnan ninf`, or bit for bit where the weight is
    finite.
    """
    value = acc + a * w
    answer = prove_no_op(value, acc, given=(PAD_ZERO, CLEAN), computed={acc, w})
    assert names_of(answer.fast_math) == ("nnan", "ninf") and answer.engine == "laws" and answer.laws
    assert answer.model is not None and answer.model["a"] == 0.0 and not math.isfinite(answer.model["w"])
    finite = (Given(w, NotNan()), Given(w, NotInfinite()))
    assert prove_no_op(value, acc, given=(PAD_ZERO, CLEAN, *finite)).fast_math == IEEE
    assumed = call("abs", w) < Limit(LimitKind.INFINITY, F)
    assert prove_no_op(value, acc, given=(PAD_ZERO, CLEAN), conditions=(assumed,)).fast_math == IEEE
    both = prove_no_op(value, acc, given=(PAD_ZERO, CLEAN, Given(w, Identical(ZERO))))
    assert both.is_proved and both.fast_math == IEEE


def test_fast_math_do_not_reach_what_the_old_program_does_not_compute() -> None:
    """Where `w` stands in nothing that is computed, no fast-math assumption helps against an infinite one."""
    answer = prove_no_op(acc + a * w, acc, given=(PAD_ZERO, CLEAN), computed={acc})
    assert answer.status is Status.REFUTED and answer.model is not None and not math.isfinite(answer.model["w"])


def test_sum_given_by_the_caller() -> None:
    """Without an invariant, adding 0.0 may change the sign of a zero, and nothing else."""
    answer = prove_no_op(acc + a, acc, given=(PAD_ZERO,))
    assert answer.fast_math == NSZ and answer.model == {"acc": -0.0, "a": 0.0}
    refused = prove_no_op(acc + a, acc, given=(PAD_ZERO,), allowed=ALL - NSZ)
    assert (
        refused.status is Status.REFUTED and refused.model is not None and math.copysign(1.0, refused.model["acc"]) < 0
    )


def test_difference_with_an_ieee_zero() -> None:
    """`v == 0.0` holds of -0.0 too, so `acc - v` is not `acc` under it; an identical 0.0 is."""
    assert prove_no_op(acc - v, acc, conditions=(equal(v, ZERO),), allowed=IEEE).status is Status.REFUTED
    assert prove_no_op(acc - v, acc, given=(Given(v, Identical(ZERO)),), allowed=IEEE).is_proved


@pytest.mark.parametrize("dtype", [FLOAT16, BFLOAT16, FLOAT32, FLOAT64], ids=str)
def test_invariants_of_sums(dtype: DType) -> None:
    """Never -0.0 is kept by addition, and not by fma, nor where a wider sum is rounded."""
    total, p, q = Var("acc", dtype), Var("p", dtype), Var("q", dtype)
    own, start = frozenset({total}), StoredValue(FloatImm(0.0, dtype))
    assert prove_invariant(NotNegativeZero(), [start, StoredValue(total + p * q, own)]).fast_math == IEEE
    fused = prove_invariant(NotNegativeZero(), [start, StoredValue(call("fma", p, q, total), own)])
    assert fused.status is Status.REFUTED and fused.model is not None
    assert prove_invariant(NotNegativeZero(), [StoredValue(FloatImm(-0.0, dtype))]).status is Status.REFUTED
    if dtype.bits == 16:
        wide = Cast(dtype, Cast(FLOAT32, total) + v)
        assert prove_invariant(NotNegativeZero(), [start, StoredValue(wide, own)]).status is Status.REFUTED


def test_invariant_of_a_maximum() -> None:
    """An accumulator that starts at the lowest number stays at or above it, NaN apart."""
    lowest = Limit(LimitKind.MIN, F)
    first = prove_invariant(
        AtLeast(lowest), [StoredValue(lowest), StoredValue(Binary(BinaryOp.MAX, v, acc), frozenset({acc}))]
    )
    assert first.is_proved and first.fast_math == IEEE
    write = StoredValue(Binary(BinaryOp.MAX, acc, v), frozenset({acc}), computed=frozenset({acc, v}))
    second = prove_invariant(AtLeast(lowest), [StoredValue(lowest), write])
    assert second.fast_math == NNAN and second.model is not None
    assert prove_invariant(AtLeast(lowest), [write], allowed=IEEE).status is Status.REFUTED
    known = (Given(a, Identical(lowest)), Given(acc, AtLeast(lowest)))
    assert prove_no_op(Binary(BinaryOp.MAX, acc, a), acc, given=known, computed={acc}).fast_math == NNAN


def test_integer_ranges_are_invariants() -> None:
    """A counter that is clamped stays within its range; one that is not leaves it by wrapping."""
    n, step = Var("n", INT8), IntImm(1, INT8)
    top = IntImm(100, INT8)
    clamped = Binary(BinaryOp.MIN, n + step, top)
    assert prove_invariant(AtMost(top), [StoredValue(IntImm(0, INT8)), StoredValue(clamped, frozenset({n}))]).is_proved
    low = prove_invariant(AtLeast(IntImm(0, INT8)), [StoredValue(n + step, frozenset({n}))])
    assert low.status is Status.REFUTED and low.model == {"n": 127}
    both = StoredValue(clamped, frozenset({n}), given=(Given(n, AtMost(top)),))
    assert prove_invariant(AtLeast(IntImm(0, INT8)), [both]).is_proved


@pytest.mark.parametrize(
    ("initial", "expected"),
    [
        ([ZERO], (NotNegativeZero(), NotNan(), NotInfinite(), AtLeast(ZERO), AtMost(ZERO))),
        ([FloatImm(-0.0, F)], (NotNan(), NotInfinite(), AtLeast(FloatImm(-0.0, F)), AtMost(FloatImm(-0.0, F)))),
        (
            [FloatImm(-math.inf, F)],
            (NotNegativeZero(), NotNan(), AtLeast(FloatImm(-math.inf, F)), AtMost(FloatImm(-math.inf, F))),
        ),
        ([x], (NotNegativeZero(), NotNan(), NotInfinite())),
    ],
)
def test_candidates(initial: Sequence[Expr], expected: tuple[object, ...]) -> None:
    """What a constant start has not is not proposed."""
    assert candidates(F, initial) == expected
    assert candidates(INT32, [const(3)]) == (AtLeast(const(3)), AtMost(const(3)))
    assert candidates(BOOL, []) == ()


@pytest.mark.parametrize(
    ("new", "old", "fast_math"),
    [
        (w * x + acc, acc + x * w, IEEE),
        ((x + y) + z, x + (y + z), REASSOC),
        ((x * y) * z, z * (y * x), IEEE),
        ((x * y) * z, x * (y * z), REASSOC),
        (x - y, x + y * -1.0, IEEE),
        ((x * -1.0) / (y * -1.0), x / y, IEEE),
        (x * 2.0, x + x, IEEE),
        (x * (y + z), x * y + x * z, ALL),
        (x * 0.0, ZERO, None),
        (Binary(BinaryOp.MAX, x, y), Binary(BinaryOp.MAX, y, x), None),
        (call("maximum", x, y), call("maximum", y, x), IEEE),
        (Select(x > y, x, y), Binary(BinaryOp.MAX, x, y), IEEE),
        (IfThenElseExpr(x > y, x, y), Binary(BinaryOp.MAX, x, y), IEEE),
        (x + 1.0, x, None),
        (Cast(F, Cast(FLOAT64, x)), x, IEEE),
        (Cast(F, Cast(FLOAT16, x)), x, None),
        (call("exp", FloatImm(0.0, F)), ONE, IEEE),
        (call("exp", FloatImm(-math.inf, F)), ZERO, IEEE),
        (call("exp", x), call("exp2", x), None),
        (call("exp", x + y), call("exp", y + x), IEEE),
        (call("sqrt", x * x), call("abs", x), None),
        (x / x, ONE, None),
        (x - x, ZERO, None),
        (ZERO, x - x, NNAN),
    ],
)
def test_least_fast_math(new: Expr, old: Expr, fast_math: FastMathSet | None) -> None:
    """Each pair is proved under the least fast-math assumptions, or refuted (None), or left open, never more."""
    answer = prove_same(new, old, budget=DEFAULT)
    if fast_math is None:
        assert answer.status is not Status.PROVED
    else:
        assert answer.is_proved and answer.fast_math == fast_math, answer
        assert (answer.model is None) == (fast_math == IEEE)


def test_operands_of_a_maximum_may_be_swapped() -> None:
    """With neither NaN nor the sign of a zero to tell them apart."""
    larger, swapped = Binary(BinaryOp.MAX, x, y), Binary(BinaryOp.MAX, y, x)
    assert prove_same(larger, swapped, computed={x, y}).fast_math == {FastMath.NNAN, FastMath.NSZ}


def test_zero_times_what_the_old_program_lacks() -> None:
    """`x * 0.0` is 0.0 for no fast-math assumption that speaks of the old side, which is a literal."""
    answer = prove_same(x * 0.0, ZERO)
    assert answer.status is Status.REFUTED


def test_traps() -> None:
    """The new value may trap only where the old one does."""
    n, d = Var("n"), Var("d")
    assert prove_same(n // d, n // d).is_proved
    assert prove_same(n // d * 0, const(0)).status is Status.REFUTED
    assert prove_same(n // d * 0, const(0), conditions=(Compare(CompareOp.GT, d, const(0)),)).is_proved
    assert prove_same(const(0), n // d * 0).is_proved
    assert (
        prove_same(
            Select(equal(d, const(0)), const(1), n // d), IfThenElseExpr(equal(d, const(0)), const(1), n // d)
        ).status
        is Status.REFUTED
    )
    least = Binary(BinaryOp.TRUNCDIV, Var("m", INT8), IntImm(-1, INT8))
    answer = prove_same(least, Var("m", INT8) * -1)
    assert answer.status is Status.REFUTED and answer.model == {"m": -128}


def test_undefined_values() -> None:
    """What the new program has undefined may be anything; what the old one stores undefined may be chosen."""
    undef = Undef(F)
    assert (
        prove_same(x, undef).is_proved
        and prove_same(undef, undef).is_proved
        and prove_same(undef + x, x + undef).is_proved
    )
    assert prove_same(undef, x).status is Status.REFUTED
    assert prove_same(undef - undef, ZERO, allowed=IEEE).status is Status.REFUTED
    assert prove_no_op(acc + undef * 0.0, acc, given=(CLEAN,)).status is Status.REFUTED
    n = Undef(INT32)
    assert prove_no_op(Var("n") + n * 0, Var("n")).is_proved
    assert prove_same(x + 1.0, undef + x).status is Status.UNKNOWN
    assert prove_same(const(1) // Var("d"), n).status is Status.REFUTED


def test_loads_and_opaque_calls_are_not_values() -> None:
    """A load is the value of a moment, an opaque call any value: equal text proves nothing."""
    load = BufferLoad(make_buffer("A", (4,), F), (const(0),))
    opaque = OpaqueCall("call_extern", (x,), F)
    for strange in (load, opaque):
        assert prove_same(strange, strange).status is Status.UNKNOWN


def test_vectors() -> None:
    """Vectors are compared by structure only."""
    lanes = F.with_lanes(4)
    p, q = Var("p", lanes), Var("q", lanes)
    assert prove_same(p + q, q + p).is_proved
    assert prove_same(p + Broadcast(FloatImm(-0.0, F), 4), p).status is Status.UNKNOWN
    assert prove_same(p, x).status is Status.UNKNOWN


def test_loose_variables() -> None:
    """Once values may differ in the sign of a zero, reciprocals no longer agree, sums do up to such a sign."""
    assert prove_same(x + y, x + y, loose={x}).fast_math == NSZ
    assert prove_same(ONE / x, ONE / x, loose={x}, allowed=NSZ).status is Status.REFUTED
    assert prove_same(call("exp", x), call("exp", x), loose={x}).is_proved
    assert prove_same(call("tanh", x), call("tanh", x), loose={x}).fast_math == NSZ
    assert prove_same(call("rsqrt", x), call("rsqrt", x), loose={x}, allowed=NSZ).status is Status.REFUTED
    assert prove_same(ONE / y, ONE / y, loose={x}).is_proved
    assert prove_same(x + 1.0, x + 1.0, loose={x}).is_proved
    assert prove_same(x * y + z, x * y + z, loose={x, y, z}).fast_math == NSZ


def test_zero_signs_are_chosen_on_the_old_side_only() -> None:
    """1 / (x + 0.0) may be infinite either way for the old program, not for the new one."""
    old = ONE / (x * 0.0)
    assert prove_same(FloatImm(math.inf, F), old, given=(Given(x, Identical(FloatImm(-1.0, F))),)).fast_math == NSZ
    assert (
        prove_same(ONE / (x * 0.0), FloatImm(-math.inf, F), conditions=(equal(x, ONE),), allowed=NSZ).status
        is Status.REFUTED
    )


def test_nothing_is_proved_where_nothing_is_left() -> None:
    """Under `ninf` an old value that is always infinite leaves no execution: that is no proof."""
    answer = prove_same(x, ONE / FloatImm(0.0, F) + y * 0.0)
    assert answer.status is not Status.PROVED


def test_facts() -> None:
    """Facts of every kind are used, by the laws and by the solvers."""
    assert prove_same(Binary(BinaryOp.MAX, x, ZERO), x, given=(Given(x, AtLeast(ONE)), Given(x, NotNan()))).is_proved
    assert (
        prove_same(x * 0.0, ZERO, given=(Given(x, Holds(placeholder(F) > ONE)), Given(x, NotInfinite()))).fast_math
        == IEEE
    )
    assert prove_same(x, y, given=(Given(x, Identical(y)),)).is_proved
    assert prove_same(call("abs", x), x, given=(Given(x, AtLeast(ONE)),)).is_proved
    n = Var("n")
    assert prove_same(Binary(BinaryOp.MIN, n, const(8)), n, given=(Given(n, AtMost(const(8))),)).is_proved


def test_smallest_sets_first() -> None:
    """Sets of fast-math assumptions come by size, in a fixed order."""
    order = [names_of(s) for s in smallest_first(frozenset({FastMath.NSZ, FastMath.NNAN}))]
    assert order == [(), ("nnan",), ("nsz",), ("nnan", "nsz")]


def test_answers_are_remembered_whatever_names_are() -> None:
    """The same question about other variables is answered from memory, its model in their names."""
    prover = ValueProver()
    first = prover.answer(Question(acc + a, acc, (PAD_ZERO,), old_is_computed=False))
    second = prover.answer(Question(x + y, x, (Given(y, Identical(ZERO)),), old_is_computed=False))
    assert prover.hits == 1 and first.fast_math == second.fast_math
    assert first.model == {"acc": -0.0, "a": 0.0} and second.model == {"x": -0.0, "y": 0.0}
    assert prover.answer(Question(x + y, y, old_is_computed=False)).status is Status.REFUTED and prover.hits == 1
    step = [StoredValue(acc + v, frozenset({acc}))]
    assert (
        prover.prove_invariant(NotNegativeZero(), step).is_proved
        and prover.prove_invariant(NotNegativeZero(), step).is_proved
    )
    assert prover.hits == 2


def test_only_what_is_allowed_is_used() -> None:
    """A prover that allows nothing refutes what needs a fast-math assumption."""
    assert (
        ValueProver(allowed=IEEE).answer(Question(acc + a, acc, (PAD_ZERO,), old_is_computed=False)).status
        is Status.REFUTED
    )
    assert prove_same((x + y) + z, x + (y + z), allowed=ALL - REASSOC).status is Status.REFUTED
