"""Arithmetic and math functions as C text: plain operators where the ranges allow, helper functions elsewhere.

Functions of float16, bfloat16 and float32 that `ir/functions` defines are its sequences (where `LP_EXACT` is 0, the
library's functions on `float`); `pow` of these is the C library's on `double`, rounded. On float64 all are the C
library's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from layoutproof.ir import interval
from layoutproof.ir.dtype import INT32, INT64, DType, Kind
from layoutproof.ir.functions.definitions import DEFINITIONS, Definition
from layoutproof.ir.functions.sequence import C, result_name, statements
from layoutproof.ir.interval import OPERATIONS, Interval
from layoutproof.ir.operators import BinaryOp
from layoutproof.lowering.codegen.c_types import (
    RANGE,
    SUFFIX,
    Binding,
    CType,
    Fragment,
    bounded,
    call,
    convert,
    is_half,
    model_name_of,
    narrowed,
    operation,
    storage_type,
    value_type,
)
from layoutproof.lowering.codegen.writer import Helper

_BITS = {
    "lp_bits": Helper(
        """static inline uint64_t lp_bits(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}"""
    ),
    "lp_number": Helper(
        """static inline double lp_number(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}"""
    ),
}

_ROUNDED: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "f32": ("(float)", "", ()),
    "f16": ("lp_round_f16_from_f64", "lp_round_f16", ("lp_round_f16_from_f64", "lp_round_f16")),
    "bf16": ("lp_round_bf16_from_f64", "lp_round_bf16", ("lp_round_bf16_from_f64", "lp_round_bf16")),
}
"""How a `double` is rounded to a type, and how a `float` is."""

ROUNDED_ONCE = frozenset(DEFINITIONS) | {"pow"}
"""Functions that are computed in `double` for the narrower types, and then rounded."""

_COMPOSED: Mapping[str, str] = {"sigmoid": "1.0f / (1.0f + expf(-x))", "rsqrt": "1.0f / sqrtf(x)"}


def _core(definition: Definition) -> Helper:
    body = "".join(f"    {line};\n" for line in statements(definition.sequence, C, "x"))
    return Helper(
        f"""#if LP_EXACT
/* {definition.name} in float64, close enough to round from. */
static inline double lp_{definition.name}(double x) {{
{body}    return {result_name(definition.sequence)};
}}
#endif""",
        ("LP_EXACT", "lp_bits", "lp_number"),
    )


def _typed(definition: Definition, suffix: str) -> Helper:
    """The function on a `float` that holds a number of the type, correctly rounded."""
    name = definition.name
    from_double, from_float, needs = _ROUNDED[suffix]
    value = f"lp_{name}(x)"
    if definition.limit is not None:
        value = f"fabs((double)x) > {definition.limit.hex()} ? {name}((double)x) : {value}"
    fast = _COMPOSED.get(name, f"{name}f(x)")
    return Helper(
        f"""static inline float lp_{name}_{suffix}(float x) {{
#if LP_EXACT
    return {from_double}({value});
#else
    return {from_float}({fast});
#endif
}}""",
        (f"lp_{name}", "LP_EXACT", *needs),
    )


def _power(suffix: str) -> Helper:
    from_double, from_float, needs = _ROUNDED[suffix]
    return Helper(
        f"""static inline float lp_pow_{suffix}(float x, float y) {{
#if LP_EXACT
    return {from_double}(pow((double)x, (double)y));
#else
    return {from_float}(powf(x, y));
#endif
}}""",
        ("LP_EXACT", *needs),
    )


def _helpers() -> Iterator[tuple[str, Helper]]:
    for name, definition in DEFINITIONS.items():
        yield f"lp_{name}", _core(definition)
        for suffix in _ROUNDED:
            yield f"lp_{name}_{suffix}", _typed(definition, suffix)
    for suffix in _ROUNDED:
        yield f"lp_pow_{suffix}", _power(suffix)


_SWITCH = Helper(
    """/* Math functions: correctly rounded, or (in a build that asked for it) those of the C library. */
#ifdef LP_FAST
#define LP_EXACT 0
#else
#define LP_EXACT 1
#endif"""
)

_DOUBLE = {
    "lp_rsqrt_f64": Helper("static inline double lp_rsqrt_f64(double x) {\n    return 1.0 / sqrt(x);\n}"),
    "lp_sigmoid_f64": Helper(
        """/* Written for each sign apart, so that no step overflows and tiny results keep their digits. */
static inline double lp_sigmoid_f64(double x) {
    double e = exp(-fabs(x));
    return x < 0 ? e / (1.0 + e) : 1.0 / (1.0 + e);
}"""
    ),
}

FUNCTION_HELPERS: Mapping[str, Helper] = {**_BITS, **_DOUBLE, "LP_EXACT": _SWITCH, **dict(_helpers())}


_FLOAT: Mapping[BinaryOp, tuple[str, Binding]] = {
    BinaryOp.ADD: ("+", Binding.SUM),
    BinaryOp.SUB: ("-", Binding.SUM),
    BinaryOp.MUL: ("*", Binding.PRODUCT),
    BinaryOp.DIV: ("/", Binding.PRODUCT),
}

# name in the program -> name in C's library, for double
_LIBRARY: Mapping[str, str] = {
    "exp": "exp", "exp2": "exp2", "log": "log", "log2": "log2", "log10": "log10", "sqrt": "sqrt", "pow": "pow",
    "tanh": "tanh", "sinh": "sinh", "cosh": "cosh", "sin": "sin", "cos": "cos", "tan": "tan", "atan": "atan",
    "erf": "erf", "abs": "fabs", "floor": "floor", "ceil": "ceil", "round": "rint", "trunc": "trunc", "fma": "fma",
}  # fmt: skip

# written by helper functions of ours
_HELPERS: Mapping[str, str] = {
    "rsqrt": "lp_rsqrt", "sigmoid": "lp_sigmoid", "fmax": "lp_fmax", "fmin": "lp_fmin", "maximum": "lp_maximum",
    "minimum": "lp_minimum",
}  # fmt: skip

# results that need no rounding to the argument's type, since they are numbers of it
_EXACT = {"abs", "floor", "ceil", "round", "trunc", "fmax", "fmin", "maximum", "minimum"}

MATH_NAMES = frozenset(_LIBRARY) | frozenset(_HELPERS)


def rounded(value: Fragment, dtype: DType, helpers: set[str]) -> Fragment:
    """A `float` result rounded to a half-precision type; other types round by themselves."""
    if not is_half(dtype):
        return value
    name = f"lp_round_{model_name_of(dtype)}"
    helpers.add(name)
    return call(name, CType.F32, value)


def float_binary(op: BinaryOp, a: Fragment, b: Fragment, dtype: DType, helpers: set[str]) -> Fragment:
    """`a op b` on floats, rounded once in `dtype`."""
    ctype = value_type(dtype)
    if op in (BinaryOp.MIN, BinaryOp.MAX):
        name = f"lp_{op.value}_{SUFFIX[ctype]}"
        helpers.add(name)
        return call(name, ctype, a, b)
    symbol, binding = _FLOAT[op]
    return rounded(Fragment(operation(symbol, binding, a, b), binding, ctype), dtype, helpers)


def emit_call(function: str, arguments: Sequence[Fragment], dtype: DType, helpers: set[str]) -> Fragment:
    """A math function of one lane."""
    if not dtype.is_float:
        return _integer_abs(arguments[0], dtype, helpers)
    if function == "fma" and is_half(dtype):
        return _half_fma(arguments, dtype, helpers)
    ctype = value_type(dtype)
    if ctype is CType.F32 and function in ROUNDED_ONCE:
        name = f"lp_{function}_{model_name_of(dtype) if is_half(dtype) else SUFFIX[ctype]}"
        helpers.add(name)
        return call(name, ctype, *arguments)
    own = _HELPERS.get(function)
    if own is not None:
        name = f"{own}_{SUFFIX[ctype]}"
        helpers.add(name)
    else:
        name = _LIBRARY[function] + ("f" if ctype is CType.F32 else "")
    found = call(name, ctype, *arguments)
    return found if function in _EXACT else rounded(found, dtype, helpers)


def _half_fma(arguments: Sequence[Fragment], dtype: DType, helpers: set[str]) -> Fragment:
    last = f"lp_round_{model_name_of(dtype)}_from_f64"
    helpers |= {"lp_odd_fma", last}
    return call(last, CType.F32, call("lp_odd_fma", CType.F64, *arguments))


def _integer_abs(value: Fragment, dtype: DType, helpers: set[str]) -> Fragment:
    if dtype.kind is Kind.UINT or value.range.low >= 0:
        return value
    ctype = value_type(dtype)
    name = f"lp_abs_{SUFFIX[ctype]}"
    helpers.add(name)
    found = call(name, ctype, convert(value, ctype) if value.ctype is CType.I64 else value)
    if dtype.bits < 32:
        return narrowed(found, storage_type(dtype), interval.of_type(dtype))
    return bounded(found, interval.of_type(dtype))


_SYMBOLS: Mapping[BinaryOp, tuple[str, Binding]] = {
    BinaryOp.ADD: ("+", Binding.SUM),
    BinaryOp.SUB: ("-", Binding.SUM),
    BinaryOp.MUL: ("*", Binding.PRODUCT),
    BinaryOp.FLOORDIV: ("/", Binding.PRODUCT),
    BinaryOp.FLOORMOD: ("%", Binding.PRODUCT),
    BinaryOp.TRUNCDIV: ("/", Binding.PRODUCT),
    BinaryOp.TRUNCMOD: ("%", Binding.PRODUCT),
    BinaryOp.BITAND: ("&", Binding.BITAND),
    BinaryOp.BITOR: ("|", Binding.BITOR),
    BinaryOp.BITXOR: ("^", Binding.BITXOR),
    BinaryOp.SHL: ("<<", Binding.SHIFT),
    BinaryOp.SHR: (">>", Binding.SHIFT),
}

_WRAPPING = {BinaryOp.ADD: "add", BinaryOp.SUB: "sub", BinaryOp.MUL: "mul", BinaryOp.SHL: "shl"}
_UNSIGNED = {CType.U32, CType.U64}
_NARROW_SHIFTS = Interval(0, 31)


def coerce(value: Fragment, ctype: CType) -> Fragment:
    """`value` in the C type `ctype`; a small signed constant is written in that type instead of being cast."""
    if value.ctype is ctype:
        return value
    if ctype in _UNSIGNED and value.binding is Binding.PRIMARY and value.text.isdigit():
        return Fragment(
            f"{value.text}u" if ctype is CType.U32 else f"UINT64_C({value.text})", Binding.PRIMARY, ctype, value.values
        )
    return convert(value, ctype)


@dataclass(slots=True)
class Integers:
    """Writes integer operations. `index_type` is the type of index arithmetic; `overflows` notes an index that may not
    fit 32 bits.
    """

    index_type: CType
    helpers: set[str] = field(default_factory=set)
    overflows: bool = False

    def as_index(self, value: Fragment) -> Fragment:
        """A value used as an index, in a signed type."""
        if not value.range.within(interval.INT32):
            self.overflows = True
        return convert(value, CType.I64) if value.ctype in _UNSIGNED else value

    def sum(self, a: Fragment, b: Fragment, dtype: DType, index: bool) -> Fragment:
        """`a + b`."""
        return self.binary(BinaryOp.ADD, a, b, dtype, index)

    def product(self, a: Fragment, b: Fragment, dtype: DType, index: bool) -> Fragment:
        """`a * b`."""
        return self.binary(BinaryOp.MUL, a, b, dtype, index)

    def index_sum(self, a: Fragment, b: Fragment) -> Fragment:
        """`a + b` in index arithmetic."""
        return self.binary(BinaryOp.ADD, a, b, self._index_dtype, True)

    def index_product(self, a: Fragment, b: Fragment) -> Fragment:
        """`a * b` in index arithmetic."""
        return self.binary(BinaryOp.MUL, a, b, self._index_dtype, True)

    @property
    def _index_dtype(self) -> DType:
        return INT64 if self.index_type is CType.I64 else INT32

    def alike(self, a: Fragment, b: Fragment, dtype: DType) -> tuple[Fragment, Fragment]:
        """Both in one C type that holds every value of both: for the two sides of a choice."""
        if a.ctype is b.ctype:
            return a, b
        ctype = value_type(dtype)
        if ctype not in _UNSIGNED and CType.I64 in (a.ctype, b.ctype):
            ctype = CType.I64
        return coerce(a, ctype), coerce(b, ctype)

    def binary(self, op: BinaryOp, a: Fragment, b: Fragment, dtype: DType, index: bool) -> Fragment:
        """`a op b` of type `dtype`, wrapping; with `index`, over the integers in the index type."""
        if dtype.kind is Kind.UINT:
            return self._unsigned(op, a, b, dtype)
        if (
            op in (BinaryOp.SHL, BinaryOp.SHR)
            and dtype.bits == 64
            and not b.range.within(_NARROW_SHIFTS)
            and a.ctype is not CType.I64
        ):
            a = convert(a, CType.I64)  # C shifts in the type of the left operand, however small its values
        exact = OPERATIONS[op](a.range, b.range)
        limits = RANGE[self.index_type] if index else interval.of_type(dtype)
        if index and not exact.within(interval.INT32):
            self.overflows = True
        if op in _WRAPPING and not exact.within(limits):
            return self._overflowing(op, a, b, dtype, index)
        return self._plain(op, a, b, exact.clamp(limits))

    def _overflowing(self, op: BinaryOp, a: Fragment, b: Fragment, dtype: DType, index: bool) -> Fragment:
        if index:  # that it fits was proved, or is what the wider index type is for
            wide = a if CType.I64 in (a.ctype, b.ctype) else convert(a, self.index_type)
            return self._write(op, wide, b, RANGE[self.index_type])
        values, ctype = interval.of_type(dtype), value_type(dtype)
        if dtype.bits < 32:
            if op is BinaryOp.SHL:
                return narrowed(self._helper("lp_shl", CType.I32, a, b), storage_type(dtype), values)
            return narrowed(self._plain(op, a, b, OPERATIONS[op](a.range, b.range)), storage_type(dtype), values)
        return self._helper(f"lp_{_WRAPPING[op]}", ctype, a, b)

    def _helper(self, name: str, ctype: CType, a: Fragment, b: Fragment, values: Interval | None = None) -> Fragment:
        self.helpers.add(f"{name}_{SUFFIX[ctype]}")
        arguments = (convert(x, ctype) if x.ctype not in (ctype, CType.I32) else x for x in (a, b))
        return call(f"{name}_{SUFFIX[ctype]}", ctype, *arguments, values=values)

    def _plain(self, op: BinaryOp, a: Fragment, b: Fragment, exact: Interval) -> Fragment:
        """The operation where its exact result is its result: computed in 64 bits only where that is needed."""
        wide = CType.I64 if CType.I64 in (a.ctype, b.ctype) else CType.I32
        if wide is CType.I32 and not exact.within(interval.INT32):
            a, wide = convert(a, CType.I64), CType.I64
        if op in (BinaryOp.MIN, BinaryOp.MAX):
            return self._helper(f"lp_{op.value}", wide, a, b, exact)
        if op in (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD) and not (a.range.low >= 0 and b.range.low >= 0):
            return self._helper("lp_floordiv" if op is BinaryOp.FLOORDIV else "lp_floormod", wide, a, b, exact)
        if op is BinaryOp.SHL and a.range.low < 0:
            return self._helper("lp_shl", wide, a, b, exact)
        if op in (BinaryOp.SHL, BinaryOp.SHR):
            a = convert(a, wide) if a.ctype is not wide else a
        return self._write(op, a, b, exact)

    def _write(self, op: BinaryOp, a: Fragment, b: Fragment, values: Interval) -> Fragment:
        symbol, binding = _SYMBOLS[op]
        ctype = CType.I64 if CType.I64 in (a.ctype, b.ctype) else CType.I32
        return Fragment(operation(symbol, binding, a, b), binding, ctype, values)

    def _unsigned(self, op: BinaryOp, a: Fragment, b: Fragment, dtype: DType) -> Fragment:
        """Unsigned types of 32 and 64 bits wrap in C as well; narrower ones are computed in 32 bits and cut back."""
        limits, ctype = interval.of_type(dtype), value_type(dtype)
        exact = OPERATIONS[op](a.range, b.range)
        fits = exact.within(limits)
        values = exact if fits else limits
        if dtype.bits < 32:
            work = CType.I32 if exact.within(interval.INT32) else CType.U32
            a, b = coerce(a, work), coerce(b, work)
        else:
            a, b = coerce(a, ctype), coerce(b, ctype)
            work = ctype
        if op in (BinaryOp.MIN, BinaryOp.MAX):
            return self._named(f"lp_{op.value}_{SUFFIX[work]}", work, a, b, values)
        symbol, binding = _SYMBOLS[op]
        found = Fragment(operation(symbol, binding, a, b), binding, work, values)
        return found if fits or dtype.bits >= 32 else narrowed(found, storage_type(dtype), limits)

    def _named(self, name: str, ctype: CType, a: Fragment, b: Fragment, values: Interval) -> Fragment:
        self.helpers.add(name)
        return call(name, ctype, a, b, values=values)
