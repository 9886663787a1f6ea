"""Small C functions for operations whose meaning differs from that of C's own operators.

A kernel contains those that it uses, each after what it needs; their meaning is that of `ir/semantics.py`. `float` has
more than twice the digits of a half-precision type plus two, so rounding the `float` result of `+ - * / sqrt` equals
rounding the exact result. Elsewhere (fma, conversions from wider types) the step before rounds to odd.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from layoutproof.lowering.codegen.c_arithmetic import FUNCTION_HELPERS
from layoutproof.lowering.codegen.c_memory import MEMORY_HELPERS, STREAM_HELPERS
from layoutproof.lowering.codegen.c_types import SUFFIX, CType
from layoutproof.lowering.codegen.c_vector import SWITCH, vector_helper
from layoutproof.lowering.codegen.writer import Helper


def _exact_helper(name: str, refused: str, result: str, needs: tuple[str, ...] = ()) -> Helper:
    return Helper(
        f"""static inline int64_t {name}(int64_t a, int64_t b, bool *inexact) {{
    if ({refused}) {{
        *inexact = true;
        return 0;
    }}
    return {result};
}}""",
        needs,
    )


_NO_QUOTIENT = "b == 0 || (b == -1 && a == INT64_MIN)"

EXACT_HELPERS: Mapping[str, Helper] = {
    "lp_exact_add": _exact_helper(
        "lp_exact_add", "(b > 0 && a > INT64_MAX - b) || (b < 0 && a < INT64_MIN - b)", "a + b"
    ),
    "lp_exact_sub": _exact_helper(
        "lp_exact_sub", "(b < 0 && a > INT64_MAX + b) || (b > 0 && a < INT64_MIN + b)", "a - b"
    ),
    "lp_exact_mul": _exact_helper(
        "lp_exact_mul",
        "a > 0 ? (b > 0 ? a > INT64_MAX / b : b < INT64_MIN / a)\n"
        "              : a < 0 && (b > 0 ? a < INT64_MIN / b : b < 0 && (a == INT64_MIN || b < INT64_MAX / a))",
        "a * b",
    ),
    "lp_exact_floordiv": _exact_helper(
        "lp_exact_floordiv", _NO_QUOTIENT, "lp_floordiv_i64(a, b)", ("lp_floordiv_i64",)
    ),
    "lp_exact_floormod": _exact_helper(
        "lp_exact_floormod", "b == 0", "b == -1 ? 0 : lp_floormod_i64(a, b)", ("lp_floormod_i64",)
    ),
    "lp_exact_truncdiv": _exact_helper("lp_exact_truncdiv", _NO_QUOTIENT, "a / b"),
    "lp_exact_truncmod": _exact_helper("lp_exact_truncmod", "b == 0", "b == -1 ? 0 : a % b"),
    "lp_exact_u64": Helper(
        """static inline int64_t lp_exact_u64(uint64_t a, bool *inexact) {
    *inexact = *inexact || a > (uint64_t)INT64_MAX;
    return *inexact ? 0 : (int64_t)a;
}"""
    ),
}


_F16 = {
    "lp_f64_to_f16": Helper(
        """/* The nearest float16 as its bits, ties to even. */
static inline uint16_t lp_f64_to_f16(double x) {
#if defined(__FLT16_MAX__)
    _Float16 half = (_Float16)x;
    uint16_t bits;
    memcpy(&bits, &half, sizeof bits);
    return bits;
#else
    uint64_t all;
    memcpy(&all, &x, sizeof all);
    uint16_t sign = (uint16_t)(all >> 48 & 0x8000u);
    uint64_t magnitude = all & UINT64_C(0x7fffffffffffffff);
    if (magnitude > UINT64_C(0x7ff0000000000000)) {
        return sign | 0x7e00u; /* NaN */
    }
    if (magnitude >= UINT64_C(0x40effe0000000000)) {
        return sign | 0x7c00u; /* 65520 and more: infinity */
    }
    if (magnitude <= UINT64_C(0x3e60000000000000)) {
        return sign; /* 2**-25 and less: zero */
    }
    int exponent = (int)(magnitude >> 52) - 1023;
    uint64_t digits = (magnitude & UINT64_C(0xfffffffffffff)) | UINT64_C(0x10000000000000);
    int shift = exponent >= -14 ? 42 : 28 - exponent;
    uint64_t rest = digits & ((UINT64_C(1) << shift) - 1), half = UINT64_C(1) << (shift - 1);
    uint64_t kept = digits >> shift;
    kept += rest > half || (rest == half && (kept & 1) != 0);
    return (uint16_t)(sign | (kept + (exponent >= -14 ? (uint64_t)(exponent + 14) << 10 : 0)));
#endif
}"""
    ),
    "lp_f32_to_f16": Helper(
        """static inline uint16_t lp_f32_to_f16(float x) {
#if defined(__FLT16_MAX__)
    _Float16 half = (_Float16)x;
    uint16_t bits;
    memcpy(&bits, &half, sizeof bits);
    return bits;
#else
    return lp_f64_to_f16(x);
#endif
}""",
        ("lp_f64_to_f16",),
    ),
    "lp_f16_to_f32": Helper(
        """/* The value of a float16 given as its bits: exact. */
static inline float lp_f16_to_f32(uint16_t bits) {
#if defined(__FLT16_MAX__)
    _Float16 half;
    memcpy(&half, &bits, sizeof half);
    return (float)half;
#else
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, exponent = bits >> 10 & 31u, digits = bits & 0x3ffu;
    float value;
    uint32_t all = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | digits << 13;
    if (exponent == 0) {
        value = (float)digits * 0x1p-24f;
        return sign != 0 ? -value : value;
    }
    memcpy(&value, &all, sizeof value);
    return value;
#endif
}"""
    ),
    "lp_round_f16": Helper(
        """/* Rounded to float16, kept as a float. */
static inline float lp_round_f16(float x) {
    return lp_f16_to_f32(lp_f32_to_f16(x));
}""",
        ("lp_f32_to_f16", "lp_f16_to_f32"),
    ),
    "lp_round_f16_from_f64": Helper(
        """static inline float lp_round_f16_from_f64(double x) {
    return lp_f16_to_f32(lp_f64_to_f16(x));
}""",
        ("lp_f64_to_f16", "lp_f16_to_f32"),
    ),
}

_BF16 = {
    "lp_f32_to_bf16": Helper(
        """/* The nearest bfloat16 as its bits, ties to even. */
static inline uint16_t lp_f32_to_bf16(float x) {
    uint32_t all;
    memcpy(&all, &x, sizeof all);
    if (x != x) {
        return (uint16_t)(all >> 16 | 0x40u);
    }
    return (uint16_t)((all + 0x7fffu + (all >> 16 & 1u)) >> 16);
}"""
    ),
    "lp_bf16_to_f32": Helper(
        """/* The value of a bfloat16 given as its bits: exact. */
static inline float lp_bf16_to_f32(uint16_t bits) {
    uint32_t all = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &all, sizeof value);
    return value;
}"""
    ),
    "lp_round_bf16": Helper(
        """/* Rounded to bfloat16, kept as a float. */
static inline float lp_round_bf16(float x) {
    return lp_bf16_to_f32(lp_f32_to_bf16(x));
}""",
        ("lp_f32_to_bf16", "lp_bf16_to_f32"),
    ),
    "lp_round_bf16_from_f64": Helper(
        """/* Through a float rounded to odd, so that only the last rounding counts. */
static inline float lp_round_bf16_from_f64(double x) {
    float near = (float)x;
    uint32_t bits;
    memcpy(&bits, &near, sizeof bits);
    if (x == x && (double)near != x && (bits & 1u) == 0) {
        bits = fabs((double)near) < fabs(x) ? bits + 1 : bits - 1;
        memcpy(&near, &bits, sizeof near);
    }
    return lp_round_bf16(near);
}""",
        ("lp_round_bf16",),
    ),
}

_SHARED = {
    "lp_odd_f64_from_u64": Helper(
        """\
/* An integer as a double, rounded to odd where it has too many digits: a second rounding then sees what was cut off. */
static inline double lp_odd_f64_from_u64(uint64_t x) {
    return x >> 53 == 0 ? (double)x : (double)(x >> 11 | ((x & 2047u) != 0)) * 2048.0;
}"""
    ),
    "lp_odd_f64_from_i64": Helper(
        """static inline double lp_odd_f64_from_i64(int64_t x) {
    return x < 0 ? -lp_odd_f64_from_u64((uint64_t)0 - (uint64_t)x) : lp_odd_f64_from_u64((uint64_t)x);
}""",
        ("lp_odd_f64_from_u64",),
    ),
    "lp_odd_fma": Helper(
        """/* a * b + c for half-precision numbers: the product is exact in double, the sum is rounded to odd. */
static inline double lp_odd_fma(float a, float b, float c) {
    double product = (double)a * (double)b, sum = product + (double)c;
    double part = sum - product, lost = (product - (sum - part)) + ((double)c - part);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (sum - sum == 0 && lost != 0 && (bits & 1u) == 0) {
        bits = (lost > 0) == (sum > 0) ? bits + 1 : bits - 1;
        memcpy(&sum, &bits, sizeof sum);
    }
    return sum;
}"""
    ),
}

_BITS = {
    f"lp_{suffix}_of_bits": Helper(
        f"""/* The number that has these bits. */
static inline {ctype} lp_{suffix}_of_bits({bits} bits) {{
    {ctype} value;
    memcpy(&value, &bits, sizeof value);
    return value;
}}"""
    )
    for suffix, ctype, bits in (("f32", "float", "uint32_t"), ("f64", "double", "uint64_t"))
}

HALF_HELPERS: Mapping[str, Helper] = {**_F16, **_BF16, **_SHARED}


def _floor_division(suffix: str, ctype: str) -> dict[str, Helper]:
    return {
        f"lp_floordiv_{suffix}": Helper(
            f"""/* The quotient rounded down; C rounds to zero. */
static inline {ctype} lp_floordiv_{suffix}({ctype} a, {ctype} b) {{
    {ctype} q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}}"""
        ),
        f"lp_floormod_{suffix}": Helper(
            f"""/* The remainder with the sign of the divisor; C's has the dividend's. */
static inline {ctype} lp_floormod_{suffix}({ctype} a, {ctype} b) {{
    {ctype} r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}}"""
        ),
    }


def _wrapping(suffix: str, ctype: str) -> dict[str, Helper]:
    unsigned = f"u{ctype}"
    found = {
        f"lp_{name}_{suffix}": Helper(
            f"""/* Wraps where it overflows. */
static inline {ctype} lp_{name}_{suffix}({ctype} a, {ctype} b) {{
    return ({ctype})(({unsigned})a {symbol} ({unsigned})b);
}}"""
        )
        for name, symbol in (("add", "+"), ("sub", "-"), ("mul", "*"))
    }
    found[f"lp_shl_{suffix}"] = Helper(
        f"""/* Drops the bits that leave on the left. */
static inline {ctype} lp_shl_{suffix}({ctype} a, {ctype} b) {{
    return ({ctype})(({unsigned})a << b);
}}"""
    )
    found[f"lp_abs_{suffix}"] = Helper(
        f"""/* The least integer has no positive counterpart and stays itself. */
static inline {ctype} lp_abs_{suffix}({ctype} a) {{
    return a < 0 ? ({ctype})(({unsigned})0 - ({unsigned})a) : a;
}}"""
    )
    return found


def _choosing(suffix: str, ctype: str) -> dict[str, Helper]:
    return {
        f"lp_{name}_{suffix}": Helper(
            f"""static inline {ctype} lp_{name}_{suffix}({ctype} a, {ctype} b) {{
    return a {symbol} b ? a : b;
}}"""
        )
        for name, symbol in (("max", ">"), ("min", "<"))
    }


def _float_functions(suffix: str, ctype: str) -> dict[str, Helper]:
    found: dict[str, Helper] = {}
    for name, symbol, lower in (("max", ">", "a"), ("min", "<", "b")):
        other = "b" if lower == "a" else "a"
        found[f"lp_{name}imum_{suffix}"] = Helper(
            f"""/* IEEE 754-2019 {name}imum: a NaN wins, and -0 is less than +0. */
static inline {ctype} lp_{name}imum_{suffix}({ctype} a, {ctype} b) {{
    if (a != a || b != b) {{
        return a + b;
    }}
    return a == b ? (signbit(a) ? {other} : {lower}) : (a {symbol} b ? a : b);
}}"""
        )
        found[f"lp_f{name}_{suffix}"] = Helper(
            f"""/* A number wins over a NaN, and -0 is less than +0. */
static inline {ctype} lp_f{name}_{suffix}({ctype} a, {ctype} b) {{
    return a != a ? b : b != b ? a : lp_{name}imum_{suffix}(a, b);
}}""",
            (f"lp_{name}imum_{suffix}",),
        )
    return found


def _all_helpers() -> dict[str, Helper]:
    found: dict[str, Helper] = {}
    for suffix, ctype in (("i32", "int32_t"), ("i64", "int64_t")):
        found |= _floor_division(suffix, ctype) | _wrapping(suffix, ctype)
    for ctype in CType:
        found |= _choosing(SUFFIX[ctype], ctype.value)
    for suffix, ctype in (("f32", "float"), ("f64", "double")):
        found |= _float_functions(suffix, ctype)
    return {
        **found,
        **HALF_HELPERS,
        **_BITS,
        **MEMORY_HELPERS,
        **EXACT_HELPERS,
        **FUNCTION_HELPERS,
        **STREAM_HELPERS,
        "LP_VECTORS": SWITCH,
    }


HELPERS: Mapping[str, Helper] = _all_helpers()


def find_helper(name: str) -> Helper:
    """A helper by name; vector helpers are made on demand. Raises KeyError for an unknown one."""
    return HELPERS[name] if name in HELPERS else vector_helper(name)


def helper_text(used: Iterable[str], find: Callable[[str], Helper] = find_helper) -> str:
    """The text of the helpers named and of all that they need, each once, needed ones first. Raises KeyError for an
    unknown one.
    """
    done: dict[str, None] = {}

    def add(name: str) -> None:
        if name not in done:
            for needed in find(name).needs:
                add(needed)
            done[name] = None

    for name in sorted(used):
        add(name)
    return "\n\n".join(find(name).text for name in done)
