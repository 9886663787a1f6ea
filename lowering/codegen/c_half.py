"""Helper functions of generated C for float16 and bfloat16: stored as 16 bits, computed in `float`, rounded once per operation.

`float` has more than twice the digits of either type, and two to spare, so rounding the `float` result of `+ - * / sqrt` gives
what rounding the exact result would. Where that does not hold (fma, conversions from wider types) the step before rounds to
odd, which keeps a trace of what was cut off.
"""

from __future__ import annotations

from collections.abc import Mapping

from layoutproof.lowering.codegen.c_template import Helper

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
        """/* An integer as a double, rounded to odd where it has too many digits: a second rounding then sees what was cut off. */
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

HALF_HELPERS: Mapping[str, Helper] = {**_F16, **_BF16, **_SHARED}
