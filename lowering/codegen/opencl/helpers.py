"""The helper functions of generated OpenCL C: C's, in OpenCL's words, and others where C goes through the bytes of a value."""

from __future__ import annotations

from collections.abc import Mapping

from layoutproof.lowering.codegen.c_helpers import find_helper
from layoutproof.lowering.codegen.c_memory import access_name
from layoutproof.lowering.codegen.c_template import Helper
from layoutproof.lowering.codegen.opencl.spelling import spell

_HALF: Mapping[str, Helper] = {
    "lp_f16_to_f32": Helper(
        """/* The value of a float16 given as its bits: exact. */
static inline float lp_f16_to_f32(ushort bits) {
    return vload_half(0, (const half *)&bits);
}"""
    ),
    "lp_f32_to_f16": Helper(
        """/* The nearest float16 as its bits, ties to even. */
static inline ushort lp_f32_to_f16(float x) {
    ushort bits;
    vstore_half_rte(x, 0, (half *)&bits);
    return bits;
}"""
    ),
    "lp_f64_to_f16": Helper(
        """#ifdef cl_khr_fp64
static inline ushort lp_f64_to_f16(double x) {
    ushort bits;
    vstore_half_rte(x, 0, (half *)&bits);
    return bits;
}
#endif"""
    ),
    "lp_round_f16_from_f64": Helper(
        """#ifdef cl_khr_fp64
static inline float lp_round_f16_from_f64(double x) {
    return lp_f16_to_f32(lp_f64_to_f16(x));
}
#endif""",
        ("lp_f64_to_f16", "lp_f16_to_f32"),
    ),
    "lp_f32_to_bf16": Helper(
        """/* The nearest bfloat16 as its bits, ties to even. */
static inline ushort lp_f32_to_bf16(float x) {
    uint all = as_uint(x);
    return (ushort)(x != x ? (all >> 16 | 0x40u) : ((all + 0x7fffu + (all >> 16 & 1u)) >> 16));
}"""
    ),
    "lp_bf16_to_f32": Helper(
        """/* The value of a bfloat16 given as its bits: exact. */
static inline float lp_bf16_to_f32(ushort bits) {
    return as_float((uint)bits << 16);
}"""
    ),
    "lp_round_bf16_from_f64": Helper(
        """#ifdef cl_khr_fp64
/* Through a float rounded to odd, so that only the last rounding counts. */
static inline float lp_round_bf16_from_f64(double x) {
    float near = (float)x;
    uint bits = as_uint(near);
    if (x == x && (double)near != x && (bits & 1u) == 0) {
        near = as_float(fabs((double)near) < fabs(x) ? bits + 1 : bits - 1);
    }
    return lp_round_bf16(near);
}
#endif""",
        ("lp_round_bf16",),
    ),
    "lp_odd_fma": Helper(
        """/* a * b + c for half-precision numbers: the product is exact in double, the sum is rounded to odd. */
static inline double lp_odd_fma(float a, float b, float c) {
    double product = (double)a * (double)b, sum = product + (double)c;
    double part = sum - product, lost = (product - (sum - part)) + ((double)c - part);
    ulong bits = as_ulong(sum);
    if (sum - sum == 0 && lost != 0 && (bits & 1u) == 0) {
        sum = as_double((lost > 0) == (sum > 0) ? bits + 1 : bits - 1);
    }
    return sum;
}"""
    ),
}

# How an element of memory that is also seen as another type is read and written: the bytes of one element.
_BYTES: Mapping[str, int] = {
    "int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int32_t": 4, "uint32_t": 4, "int64_t": 8, "uint64_t": 8,
    "float": 4, "double": 8,
}  # fmt: skip


def _access(storage: str, size: int) -> dict[str, Helper]:
    name, many = spell(storage), size if size > 1 else ""
    read = f"vload{many}(index, bytes)" if size > 1 else "bytes[index]"
    write = f"vstore{many}(as_uchar{many}(value), index, bytes)" if size > 1 else "bytes[index] = as_uchar(value)"
    return {
        access_name("load", storage): Helper(
            f"""/* Element `index` of memory that is also seen as another type. */
static inline {name} {access_name("load", storage)}(__global const void *base, long index) {{
    __global const uchar *bytes = (__global const uchar *)base;
    return as_{name}({read});
}}"""
        ),
        access_name("store", storage): Helper(
            f"""static inline void {access_name("store", storage)}(__global void *base, long index, {name} value) {{
    __global uchar *bytes = (__global uchar *)base;
    {write};
}}"""
        ),
    }


def _component(suffix: str, name: str) -> Helper:
    return Helper(
        f"""/* One channel of a texel. */
static inline {name} lp_channel_{suffix}({name}4 texel, int channel) {{
    return channel < 2 ? (channel == 0 ? texel.x : texel.y) : (channel == 2 ? texel.z : texel.w);
}}"""
    )


_FUNCTIONS: Mapping[str, Helper] = {
    "LP_EXACT": Helper(
        """/* Math functions: correctly rounded, or the device's own where it has no double or the build asked for fast ones. */
#if defined(cl_khr_fp64) && !defined(__FAST_RELAXED_MATH__)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define LP_EXACT 1
#else
#define LP_EXACT 0
#endif"""
    ),
    "lp_bits": Helper(
        """#if LP_EXACT
static inline ulong lp_bits(double x) {
    return as_ulong(x);
}
#endif""",
        ("LP_EXACT",),
    ),
    "lp_number": Helper(
        """#if LP_EXACT
static inline double lp_number(ulong bits) {
    return as_double(bits);
}
#endif""",
        ("LP_EXACT",),
    ),
}

OWN_HELPERS: Mapping[str, Helper] = {
    **_HALF,
    **_FUNCTIONS,
    **{name: helper for storage, size in _BYTES.items() for name, helper in _access(storage, size).items()},
    **{f"lp_channel_{suffix}": _component(suffix, name) for suffix, name in (("f32", "float"), ("i32", "int"), ("u32", "uint"))},
    "lp_work_item": Helper(
        """/* The number of this work item among all of them. */
static inline size_t lp_work_item(void) {
    return (get_global_id(2) * get_global_size(1) + get_global_id(1)) * get_global_size(0) + get_global_id(0);
}"""
    ),
}


def find_opencl_helper(name: str) -> Helper:
    """The helper of a name, in OpenCL C. Raises KeyError for an unknown one."""
    own = OWN_HELPERS.get(name)
    if own is not None:
        return own
    helper = find_helper(name)
    return Helper(spell(helper.text), helper.needs)
