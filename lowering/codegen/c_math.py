"""Float arithmetic and math functions as C text.

Functions of float16, bfloat16 and float32 that `ir/functions` defines are its sequences; `pow` of these is the C library's on `double`,
rounded. On float64 all are the C library's: `sigmoid(x)` is `1 / (1 + exp(-x))`, for negative x as `exp(x) / (1 + exp(x))`, and
`rsqrt(x)` is `1 / sqrt(x)`. Arithmetic on half-precision numbers is done in `float` and rounded once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from layoutproof.ir import interval
from layoutproof.ir.dtype import DType, Kind
from layoutproof.ir.expr import BinaryOp
from layoutproof.lowering.codegen.c_functions import ROUNDED_ONCE
from layoutproof.lowering.codegen.c_types import SUFFIX, CType, half_name, is_half, storage_type, value_type
from layoutproof.lowering.codegen.fragments import Binding, Fragment, bounded, call, convert, narrowed, operation

_FLOAT: Mapping[BinaryOp, tuple[str, Binding]] = {
    BinaryOp.ADD: ("+", Binding.SUM),
    BinaryOp.SUB: ("-", Binding.SUM),
    BinaryOp.MUL: ("*", Binding.PRODUCT),
    BinaryOp.DIV: ("/", Binding.PRODUCT),
}

# name in the program -> name in C's library, for double
_LIBRARY: Mapping[str, str] = {
    "exp": "exp", "exp2": "exp2", "log": "log", "log2": "log2", "log10": "log10", "sqrt": "sqrt", "pow": "pow", "tanh": "tanh",
    "sinh": "sinh", "cosh": "cosh", "sin": "sin", "cos": "cos", "tan": "tan", "atan": "atan", "erf": "erf",
    "abs": "fabs", "floor": "floor", "ceil": "ceil", "round": "rint", "trunc": "trunc", "fma": "fma",
}  # fmt: skip

# written by helper functions of ours
_HELPERS: Mapping[str, str] = {
    "rsqrt": "lp_rsqrt", "sigmoid": "lp_sigmoid", "fmax": "lp_fmax", "fmin": "lp_fmin", "maximum": "lp_maximum", "minimum": "lp_minimum",
}  # fmt: skip

# results that need no rounding to the argument's type, since they are numbers of it
_EXACT = {"abs", "floor", "ceil", "round", "trunc", "fmax", "fmin", "maximum", "minimum"}

MATH_NAMES = frozenset(_LIBRARY) | frozenset(_HELPERS)


def rounded(value: Fragment, dtype: DType, helpers: set[str]) -> Fragment:
    """A `float` result rounded to a half-precision type; other types round by themselves."""
    if not is_half(dtype):
        return value
    name = f"lp_round_{half_name(dtype)}"
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
        name = f"lp_{function}_{half_name(dtype) if is_half(dtype) else SUFFIX[ctype]}"
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
    last = f"lp_round_{half_name(dtype)}_from_f64"
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
