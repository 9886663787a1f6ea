"""The table of pad values: for every reduction and type, which pad value is neutral, and under which strictness; both
ways.

Each row is a question with the answer that it must have. `proofs/laws/padding.lplemmas.json` is made of them; nothing
is proved from them. `acc` is the accumulator's value, `v`, `a`, `w` what is read; the pad value is put in. A row that
names an invariant asks whether a write keeps it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from layoutproof.ir.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, UINT8, UINT32, DType
from layoutproof.ir.expr import Binary, Cast, Expr, FloatImm, IntImm, Select, Var, equal, logical_and, logical_or
from layoutproof.ir.intrinsics import Call, Limit, LimitKind
from layoutproof.ir.operators import BinaryOp
from layoutproof.verify.values.fast_math import IEEE, FastMath, FastMathSet
from layoutproof.verify.values.question import (
    AtLeast,
    AtMost,
    Given,
    NotInfinite,
    NotNan,
    NotNegativeZero,
    Property,
    Question,
)
from layoutproof.verify.verdict.verdict import Status

FLOATS = (FLOAT16, BFLOAT16, FLOAT32, FLOAT64)
INTEGERS = (INT8, INT32, INT64, UINT8, UINT32)
NNAN: FastMathSet = frozenset({FastMath.NNAN})
NSZ: FastMathSet = frozenset({FastMath.NSZ})
NNAN_NINF: FastMathSet = frozenset({FastMath.NNAN, FastMath.NINF})
YES, NO = Status.PROVED, Status.REFUTED


@dataclass(frozen=True)
class Row:
    """A question and its answer: proved under all of `allowed` and nothing less, or refuted under it."""

    name: str
    question: Question
    expected: Status
    allowed: FastMathSet = IEEE


def rows() -> Iterator[Row]:
    """Every row."""
    for dtype in FLOATS:
        for make in (
            _sums,
            _products_added,
            _fused,
            _products,
            _extremes,
            _other_extremes,
            _argmax,
            _statistics,
            _elementwise,
        ):
            yield from make(dtype)
    for dtype in INTEGERS:
        yield from _integers(dtype)
    yield from _mixed()


def _no_op(
    name: str,
    value: Expr,
    expected: Status,
    allowed: FastMathSet = IEEE,
    given: Sequence[Property | Given] = (),
    computed: Sequence[str] = ("acc",),
) -> Row:
    """A row that asks whether storing a value over `acc` changes nothing; properties in `given` are of `acc`."""
    acc = Var("acc", value.dtype)
    facts = tuple(fact if isinstance(fact, Given) else Given(acc, fact) for fact in given)
    variables = frozenset(Var(letter, value.dtype) for letter in computed)
    return Row(f"{value.dtype}: {name}", Question(value, acc, facts, (), variables, False), expected, allowed)


def _keeps(name: str, value: Expr, known: Property, expected: Status, allowed: FastMathSet = IEEE) -> Row:
    """A row that asks whether a write keeps an invariant."""
    acc = Var("acc", value.dtype)
    computed = frozenset({acc, Var("v", value.dtype)})
    question = Question(value, value, (Given(acc, known),), (), computed, False, goal=known)
    return Row(f"{value.dtype}: {name} keeps: {known}", question, expected, allowed)


def _names(dtype: DType) -> tuple[Var, Var, Var, Var]:
    acc, v, a, w = (Var(name, dtype) for name in ("acc", "v", "a", "w"))
    return acc, v, a, w


def _number(value: float, dtype: DType) -> FloatImm:
    return FloatImm(value, dtype)


def _minus_infinity(dtype: DType) -> Expr:
    return FloatImm(float("-inf"), dtype)


def _sums(dtype: DType) -> Iterator[Row]:
    acc, v, _, _ = _names(dtype)
    zero, negative = _number(0.0, dtype), _number(-0.0, dtype)
    yield _no_op("acc + -0.0", acc + negative, YES)
    yield _no_op("acc + 0.0", acc + zero, NO)
    yield _no_op("acc + 0.0", acc + zero, YES, NSZ)
    yield _no_op("acc + 0.0, acc never -0.0", acc + zero, YES, given=[NotNegativeZero()])
    yield _no_op("acc + 1.0", acc + _number(1.0, dtype), NO)
    yield _no_op("acc + v, v not known", acc + v, NO)
    yield _keeps("acc + v", acc + v, NotNegativeZero(), YES)
    yield _keeps("acc - v", acc - v, NotNegativeZero(), YES)
    yield _keeps("acc + v", acc + v, NotNan(), NO)


def _products_added(dtype: DType) -> Iterator[Row]:
    acc, v, _, w = _names(dtype)
    zero, negative = _number(0.0, dtype), _number(-0.0, dtype)
    finite = (Given(w, NotNan()), Given(w, NotInfinite()))
    clean = [NotNegativeZero()]
    yield _no_op("acc + 0.0 * -0.0", acc + zero * negative, YES)
    yield _no_op("acc + 0.0 * 0.0", acc + zero * zero, NO)
    yield _no_op("acc + 0.0 * 0.0, acc never -0.0", acc + zero * zero, YES, given=clean)
    yield _no_op("acc + 0.0 * w, acc never -0.0", acc + zero * w, NO, given=clean)
    yield _no_op("acc + 0.0 * w, acc never -0.0, w finite", acc + zero * w, YES, given=[*clean, *finite])
    yield _no_op(
        "acc + 0.0 * w, acc never -0.0, w computed", acc + zero * w, YES, NNAN_NINF, clean, computed=("acc", "w")
    )
    yield _no_op("acc + 0.0 * w, w finite", acc + zero * w, NO, given=finite)
    yield _keeps("acc + v * w", acc + v * w, NotNegativeZero(), YES)


def _fused(dtype: DType) -> Iterator[Row]:
    acc, v, _, w = _names(dtype)
    zero, negative = _number(0.0, dtype), _number(-0.0, dtype)
    finite = (Given(w, NotNan()), Given(w, NotInfinite()))
    clean = [NotNegativeZero()]

    def fma(x: Expr, y: Expr) -> Expr:
        return Call("fma", (x, y, acc))

    yield _no_op("fma(0.0, -0.0, acc)", fma(zero, negative), YES)
    yield _no_op("fma(0.0, 0.0, acc)", fma(zero, zero), NO)
    yield _no_op("fma(0.0, 0.0, acc), acc never -0.0", fma(zero, zero), YES, given=clean)
    yield _no_op("fma(0.0, w, acc), acc never -0.0", fma(zero, w), NO, given=clean)
    yield _no_op("fma(0.0, w, acc), acc never -0.0, w finite", fma(zero, w), YES, given=[*clean, *finite])
    yield _keeps("fma(v, w, acc)", fma(v, w), NotNegativeZero(), NO)


def _products(dtype: DType) -> Iterator[Row]:
    acc = _names(dtype)[0]
    yield _no_op("acc * 1.0", acc * _number(1.0, dtype), YES)
    yield _no_op("acc * 0.0", acc * _number(0.0, dtype), NO)
    yield _no_op("acc * 0.0", acc * _number(0.0, dtype), NO, NNAN_NINF | NSZ)


def _extremes(dtype: DType) -> Iterator[Row]:
    acc, v, _, _ = _names(dtype)
    for op, kind, bound in ((BinaryOp.MAX, LimitKind.MIN, AtLeast), (BinaryOp.MIN, LimitKind.MAX, AtMost)):
        infinite = _number(float("-inf") if op is BinaryOp.MAX else float("inf"), dtype)
        extreme, zero = Limit(kind, dtype), _number(0.0, dtype)
        name, least, most = (
            op.value,
            "-inf" if op is BinaryOp.MAX else "inf",
            "lowest" if op is BinaryOp.MAX else "highest",
        )
        yield _no_op(f"{name}(acc, {least})", Binary(op, acc, infinite), NO)
        yield _no_op(f"{name}(acc, {least})", Binary(op, acc, infinite), YES, NNAN)
        yield _no_op(f"{name}(acc, {most})", Binary(op, acc, extreme), NO, NNAN)
        yield _no_op(f"{name}(acc, {most}), acc starts there", Binary(op, acc, extreme), YES, NNAN, [bound(extreme)])
        yield _no_op(f"{name}(acc, {most}), acc starts there", Binary(op, acc, extreme), NO, given=[bound(extreme)])
        yield _no_op(f"{name}({least}, acc)", Binary(op, infinite, acc), YES)
        yield _no_op(f"{name}({most}, acc), acc starts there", Binary(op, extreme, acc), YES, given=[bound(extreme)])
        yield _no_op(f"{name}(acc, 0.0)", Binary(op, acc, zero), NO, NNAN_NINF | NSZ)
        yield _no_op(f"{name}(0.0, acc)", Binary(op, zero, acc), NO, NNAN_NINF | NSZ)
        yield _keeps(f"{name}(acc, v)", Binary(op, acc, v), bound(extreme), YES, NNAN)
        yield _keeps(f"{name}(acc, v)", Binary(op, acc, v), bound(extreme), NO)
        yield _keeps(f"{name}(v, acc)", Binary(op, v, acc), bound(extreme), YES)


def _other_extremes(dtype: DType) -> Iterator[Row]:
    acc = _names(dtype)[0]
    for is_max in (True, False):
        infinite = _number(float("-inf") if is_max else float("inf"), dtype)
        extreme = Limit(LimitKind.MIN if is_max else LimitKind.MAX, dtype)
        start: Property = AtLeast(extreme) if is_max else AtMost(extreme)
        ieee, c, least = ("maximum", "fmax", "-inf") if is_max else ("minimum", "fmin", "inf")
        chosen = Select(acc < infinite if is_max else acc > infinite, infinite, acc)
        yield _no_op(f"acc {'<' if is_max else '>'} v ? v : acc with {least}", chosen, YES)
        yield _no_op(f"{ieee}(acc, {least})", Call(ieee, (acc, infinite)), YES)
        yield _no_op(f"{ieee}(acc, the extreme), acc starts there", Call(ieee, (acc, extreme)), YES, given=[start])
        yield _no_op(f"{ieee}(acc, 0.0)", Call(ieee, (acc, _number(0.0, dtype))), NO, NNAN_NINF | NSZ)
        yield _no_op(f"{c}(acc, {least})", Call(c, (acc, infinite)), NO)
        yield _no_op(f"{c}(acc, {least}), acc not NaN", Call(c, (acc, infinite)), YES, given=[NotNan()])


def _argmax(dtype: DType) -> Iterator[Row]:
    """Two accumulators, a value and its index: the padding's index is larger than any and the first wins."""
    acc, index, pad_index = Var("acc", dtype), Var("index", INT32), Var("pad_index", INT32)
    facts = (Given(pad_index, AtLeast(IntImm(1000, INT32))), Given(index, AtMost(IntImm(999, INT32))))
    pad = _minus_infinity(dtype)
    wins = acc > pad
    keeps = logical_or(wins, logical_and(equal(acc, pad), index < pad_index))
    for name, condition, expected, allowed in (
        ("first wins", keeps, YES, NNAN),
        ("first wins", keeps, NO, IEEE),
        ("last wins", wins, NO, NNAN),
    ):
        question = Question(Select(condition, index, pad_index), index, facts, (), frozenset({acc}), False)
        yield Row(f"int32: argmax of {dtype}, {name}", question, expected, allowed)
    yield _no_op("argmax's value", Select(keeps, acc, pad), YES, NNAN, facts)


def _statistics(dtype: DType) -> Iterator[Row]:
    acc, _, a, _ = _names(dtype)
    zero, mean = _number(0.0, dtype), Var("mean", dtype)
    known = (Given(mean, NotNan()), Given(mean, NotInfinite()))
    clean = [NotNegativeZero()]
    quotient = Question(acc / _number(4.0, dtype), acc / _number(3.0, dtype))
    yield Row(f"{dtype}: a mean by the padded count", quotient, NO, NNAN_NINF | NSZ)
    yield _no_op("variance, padding 0.0 not masked", acc + (zero - mean) * (zero - mean), NO, given=[*clean, *known])
    yield _no_op("sum of squares, padding 0.0, acc never -0.0", acc + zero * zero, YES, given=clean)
    shifted = Call("exp", (_minus_infinity(dtype) - mean,))
    yield _no_op("softmax's sum, padding -inf, finite maximum", acc + shifted, YES, given=[*clean, *known])
    yield _no_op("softmax's sum, padding -inf, any maximum", acc + shifted, NO, given=clean)
    yield _no_op("softmax's sum, padding 0.0", acc + Call("exp", (zero - mean,)), NO, given=[*clean, *known])
    poisoned = acc + Var("pad", dtype) * a
    yield _no_op(
        "matmul, one operand's tail NaN, the other's 0.0", acc + _number(float("nan"), dtype) * zero, NO, given=clean
    )
    yield _no_op("matmul, padding not known", poisoned, NO, NNAN_NINF | NSZ, clean, computed=("acc", "a"))


def _elementwise(dtype: DType) -> Iterator[Row]:
    zero, one, half = _number(0.0, dtype), _number(1.0, dtype), _number(0.5, dtype)
    b = Var("b", dtype)

    def call(function: str, *arguments: Expr) -> Expr:
        return Call(function, arguments)

    stays = {
        "relu": Binary(BinaryOp.MAX, zero, zero),
        "tanh": call("tanh", zero),
        "gelu": half * zero * (one + call("erf", zero * half)),
        "silu": zero * call("sigmoid", zero),
        "sqrt": call("sqrt", zero),
        "abs": call("abs", zero),
        "square": zero * zero,
        "sin": call("sin", zero),
        "erf": call("erf", zero),
        "floor": call("floor", zero),
    }
    changes = {
        "exp": call("exp", zero),
        "cos": call("cos", zero),
        "sigmoid": call("sigmoid", zero),
        "softplus": call("log", one + call("exp", zero)),
        "hard sigmoid": Binary(BinaryOp.MAX, zero, Binary(BinaryOp.MIN, one, zero + half)),
        "log": call("log", zero),
        "rsqrt": call("rsqrt", zero),
        "reciprocal": one / zero,
        "0/0": zero / zero,
        "pow(0, 0)": call("pow", zero, zero),
        "x log x": zero * call("log", zero),
        "a bias added": zero + b,
    }
    for expected, group in ((YES, stays), (NO, changes)):
        for name, value in group.items():
            yield Row(f"{dtype}: {name} keeps a pad of 0.0", Question(value, zero), expected)


def _integers(dtype: DType) -> Iterator[Row]:
    acc, v = Var("acc", dtype), Var("v", dtype)
    zero, one, ones = (IntImm(value, dtype) for value in (0, 1, -1 if dtype.min_int < 0 else dtype.max_int))
    point = IntImm(7, dtype)
    lowest, highest = Limit(LimitKind.MIN, dtype), Limit(LimitKind.MAX, dtype)
    yield _no_op("acc + 0", acc + zero, YES)
    yield _no_op("acc + 1", acc + one, NO)
    yield _no_op("quantised, padded with the zero point", acc + (point - point) * v, YES)
    yield _no_op("quantised, padded with 0", acc + (zero - point) * v, NO)
    yield _no_op("acc * 1", acc * one, YES)
    yield _no_op("acc * 0", acc * zero, NO)
    yield _no_op("max(acc, lowest)", Binary(BinaryOp.MAX, acc, lowest), YES)
    yield _no_op("max(acc, 0)", Binary(BinaryOp.MAX, acc, zero), YES if dtype.min_int == 0 else NO)
    yield _no_op("min(acc, highest)", Binary(BinaryOp.MIN, acc, highest), YES)
    yield _no_op("min(acc, 0)", Binary(BinaryOp.MIN, acc, zero), NO)
    yield _no_op("acc & ones", acc & ones, YES)
    yield _no_op("acc & 0", acc & zero, NO)
    yield _no_op("acc | 0", acc | zero, YES)
    yield _no_op("acc | ones", acc | ones, NO)
    yield _no_op("acc ^ 0", acc ^ zero, YES)
    yield _no_op("acc ^ ones", acc ^ ones, NO)


def _mixed() -> Iterator[Row]:
    """Accumulators of another type than what they sum."""
    for narrow in (FLOAT16, BFLOAT16):
        acc, v, exact = Var("acc", narrow), Var("v", FLOAT32), Var("x", narrow)
        wide = Cast(narrow, Cast(FLOAT32, acc) + v)
        yield _keeps("an accumulator fed by float32 sums", wide, NotNegativeZero(), NO)
        zero = Cast(narrow, Cast(FLOAT32, acc) + FloatImm(0.0, FLOAT32))
        name = "an accumulator fed by float32 sums, pad 0.0, acc never -0.0"
        yield _no_op(name, zero, YES, given=[NotNegativeZero()])
        yield Row(f"{narrow}: there and back through float32", Question(Cast(narrow, Cast(FLOAT32, exact)), exact), YES)
    clamped = _saturating(_saturating(Var("x", INT16) + Var("y", INT16)) + Var("z", INT16))
    other = _saturating(Var("x", INT16) + _saturating(Var("y", INT16) + Var("z", INT16)))
    bounds = AtLeast(IntImm(-128, INT16)), AtMost(IntImm(127, INT16))
    small = tuple(Given(Var(name, INT16), bound) for name in "xyz" for bound in bounds)
    yield Row("int16: saturating sums regroup", Question(clamped, other, small), NO)


def _saturating(value: Expr) -> Expr:
    return Binary(BinaryOp.MIN, Binary(BinaryOp.MAX, value, IntImm(-128, INT16)), IntImm(127, INT16))
