"""The spelling of C in OpenCL C where the two languages differ, and the helper functions of generated OpenCL C.

The generators write C; each line is translated as it is added to the text. The translated words are reserved: no name
of a program equals one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from math import prod

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.expr import Expr, IntImm, binary, widen
from layoutproof.ir.operators import BinaryOp
from layoutproof.lowering.codegen.c_arithmetic import MATH_NAMES
from layoutproof.lowering.codegen.c_helpers import find_helper
from layoutproof.lowering.codegen.c_memory import access_name
from layoutproof.lowering.codegen.calling_convention import Parameter
from layoutproof.lowering.codegen.writer import RESERVED, Helper, Names, entry_name

_TYPES: Mapping[str, str] = {
    "int8_t": "char", "int16_t": "short", "int32_t": "int", "int64_t": "long",
    "uint8_t": "uchar", "uint16_t": "ushort", "uint32_t": "uint", "uint64_t": "ulong",
    "INT32_MIN": "INT_MIN", "INT64_MIN": "LONG_MIN",
}  # fmt: skip

# OpenCL's functions take floats and doubles under one name.
_FUNCTIONS: Mapping[str, str] = {f"{name}f": name for name in (*MATH_NAMES, "fabs", "rint") if f"{name}f" in RESERVED}

_WORDS: Mapping[str, str] = {**_TYPES, **_FUNCTIONS}
_WORD = re.compile(r"\b(?:" + "|".join(_WORDS) + r")\b")
_CONSTANT = re.compile(r"\b(U?)INT64_C\((-?)(\d+)\)")


def spell(text: str) -> str:
    """A line of C as OpenCL C."""
    return _WORD.sub(lambda m: _WORDS[m[0]], _CONSTANT.sub(_constant, text))


def _constant(match: re.Match[str]) -> str:
    unsigned, sign, digits = match.groups()
    literal = f"{sign}{digits}{'ul' if unsigned else 'l'}"
    return f"({literal})" if sign else literal


_KEYWORDS = """
kernel global local constant private generic pipe read_only write_only read_write half uchar ushort uint ulong complex
imaginary quad image1d_t image1d_array_t image1d_buffer_t image2d_t image2d_array_t image2d_depth_t
image2d_array_depth_t image3d_t sampler_t event_t queue_t ndrange_t clk_event_t reserve_id_t atomic_int atomic_uint
atomic_long atomic_ulong atomic_float atomic_double CHAR_BIT CHAR_MAX CHAR_MIN INT_MAX INT_MIN LONG_MAX LONG_MIN
SCHAR_MAX SCHAR_MIN SHRT_MAX SHRT_MIN UCHAR_MAX USHRT_MAX UINT_MAX ULONG_MAX MAXFLOAT HUGE_VALF M_E M_PI FLT_MAX
FLT_MIN FLT_EPSILON DBL_MAX DBL_MIN DBL_EPSILON memory_order_acq_rel memory_order_relaxed memory_order_seq_cst
memory_scope_work_item memory_scope_device get_work_dim get_global_size get_global_id get_local_size get_local_id
get_num_groups get_group_id get_global_offset barrier mem_fence read_mem_fence write_mem_fence prefetch printf any all
select clamp degrees max min mix radians step smoothstep sign cross dot distance length normalize mad mad24 mul24
mad_hi mul_hi mad_sat add_sat sub_sat hadd rhadd clz ctz popcount rotate upsample abs_diff isequal isnotequal
isgreater isless isordered isunordered isnormal acos acosh acospi asin asinh asinpi atan2 atanh atanpi cbrt copysign
cospi erfc exp10 expm1 fdim fmod fract hypot ilogb lgamma_r log1p logb maxmag minmag modf nan nextafter pown powr
remainder remquo rootn rsqrt sincos sinpi tanpi bitselect shuffle shuffle2 sigmoid
"""
_SCALARS = "char uchar short ushort int uint long ulong float double half bool".split()
_VECTORS = frozenset(f"{scalar}{lanes}" for scalar in _SCALARS for lanes in (2, 3, 4, 8, 16))
OPENCL_RESERVED = RESERVED | frozenset(_KEYWORDS.split()) | _VECTORS
"""The words of C and of OpenCL C."""

_FAMILIES = re.compile(
    r"(?:as|convert|native|half|atom|atomic|async|work_group|read_image|write_image|get_image|cl|CL|CLK)_|v(?:load|store)"
)


def kernel_name(name: str) -> str:
    """The name of a kernel for a program's function: its own, or another where OpenCL C has that one."""
    return entry_name(f"v_{name}" if _FAMILIES.match(name) else name, OPENCL_RESERVED)


class OpenCLNames(Names):
    """The identifiers of open blocks; none is a word of OpenCL C or called like its families of functions."""

    def __init__(self, taken: tuple[str, ...] = ()) -> None:
        super().__init__(taken, OPENCL_RESERVED)

    def declare(self, wanted: str) -> str:
        """A free identifier like `wanted`, taken in the innermost block."""
        return super().declare(f"v_{wanted}" if _FAMILIES.match(wanted) else wanted)


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


_BITS: Mapping[str, Helper] = {
    f"lp_{suffix}_of_bits": Helper(
        f"""/* The number that has these bits. */
static inline {name} lp_{suffix}_of_bits({bits} bits) {{
    return as_{name}(bits);
}}"""
    )
    for suffix, name, bits in (("f32", "float", "uint"), ("f64", "double", "ulong"))
}


def _component(suffix: str, name: str) -> Helper:
    return Helper(
        f"""/* One channel of a texel. */
static inline {name} lp_channel_{suffix}({name}4 texel, int channel) {{
    return channel < 2 ? (channel == 0 ? texel.x : texel.y) : (channel == 2 ? texel.z : texel.w);
}}"""
    )


_FUNCTIONS_HELPERS: Mapping[str, Helper] = {
    "LP_EXACT": Helper(
        """\
/* Math functions: correctly rounded, or the device's own where it has no double or the build asked for fast ones. */
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
    **_BITS,
    **_FUNCTIONS_HELPERS,
    **{name: helper for storage, size in _BYTES.items() for name, helper in _access(storage, size).items()},
    **{
        f"lp_channel_{suffix}": _component(suffix, name)
        for suffix, name in (("f32", "float"), ("i32", "int"), ("u32", "uint"))
    },
    "lp_work_item": Helper(
        """/* The number of this work item among all of them. */
static inline size_t lp_work_item(void) {
    return (get_global_id(2) * get_global_size(1) + get_global_id(1)) * get_global_size(0) + get_global_id(0);
}"""
    ),
}


def find_opencl_helper(name: str) -> Helper:
    """A helper by name, in OpenCL C. Raises KeyError for an unknown one."""
    own = OWN_HELPERS.get(name)
    if own is not None:
        return own
    helper = find_helper(name)
    return Helper(spell(helper.text), helper.needs)


READ_WRITE_IMAGES = "__opencl_c_read_write_images"
"""The feature, of OpenCL C 2.0 and later, that a kernel needs which reads and writes one image; it stands among the
extensions.
"""


@dataclass(frozen=True, slots=True)
class Image:
    """Memory that is a texture: a parameter, or a temporary.

    `buffer` is the view of it by its physical axes, which the kernels access. Its elements, row-major, are the image's
    channels in order: texel `(x, y, layer)` holds elements `[layer, y, x * channels + c]`. `width`, `height` and
    `layers` count texels. `channel_order` ("R", "RGBA") and `channel_type` ("FLOAT", "HALF_FLOAT", "SIGNED_INT8", ...)
    are called as OpenCL calls them.
    """

    buffer: Buffer
    channels: int
    kind: str
    width: Expr
    height: Expr
    layers: Expr | None
    channel_order: str
    channel_type: str


@dataclass(frozen=True, slots=True)
class KernelArgument:
    """Memory as an argument of a kernel: the parameter's or temporary's name, and what this kernel does with it.

    `access` is "read_only", "write_only" or "read_write". `image` is None for a `__global` pointer.
    """

    name: str
    image: Image | None
    access: str


@dataclass(frozen=True, slots=True)
class LocalArgument:
    """A `__local` pointer of a kernel: memory of a group whose extents are not constant. The host sets its size."""

    buffer: Buffer

    @property
    def name(self) -> str:
        """The buffer's name."""
        return self.buffer.name


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel of the program. Launches run in order, each after the one before it is done.

    `arguments` are in the order of the kernel's own parameters; a `Parameter` is a scalar. `local_size` is None where
    the device may choose. `shared` is all memory that the work items of a group share, also what is no argument.
    """

    name: str
    arguments: tuple[KernelArgument | LocalArgument | Parameter, ...]
    global_size: tuple[Expr, ...]
    local_size: tuple[Expr, ...] | None
    shared: tuple[Buffer, ...] = ()

    @property
    def local_bytes(self) -> Expr:
        """The size of the memory that the work items of a group share."""
        return bytes_shared(self.shared)


def bytes_shared(buffers: Iterable[Buffer]) -> Expr:
    """The size of buffers together as it is printed; a number where all extents are constant."""
    constant, varying = 0, list[Expr]()
    for buffer in buffers:
        elements = prod(extent.value for extent in buffer.shape if isinstance(extent, IntImm)) * buffer.dtype.bytes
        extents = [extent for extent in buffer.shape if not isinstance(extent, IntImm)]
        if extents:
            varying.append(_joined(BinaryOp.MUL, [*extents, IntImm(elements, extents[0].dtype)]))
        else:
            constant += max(elements, buffer.dtype.bytes)
    rest = [IntImm(constant)] if constant or not varying else []
    return _joined(BinaryOp.ADD, [*varying, *rest])


def _joined(op: BinaryOp, terms: Sequence[Expr]) -> Expr:
    dtype = max((term.dtype for term in terms), key=lambda dtype: dtype.bits)
    return reduce(partial(binary, op), [widen(term, dtype) for term in terms])


@dataclass(frozen=True, slots=True)
class OpenCLSource:
    """Generated OpenCL C: its text, its launches in order, the function's parameters, and the memory to allocate around
    them.

    A temporary is a plain buffer, or an image; no two, and no temporary and parameter, have one name.
    """

    text: str
    launches: tuple[Launch, ...]
    parameters: tuple[Parameter, ...]
    temporaries: tuple[Buffer | Image, ...]
    index_bits: int
    extensions: tuple[str, ...]
