"""C's words in OpenCL C: types, constants and library functions that the two languages call differently.

The generators write C; a line is put into OpenCL's words as it is added to the text. No name of a program can be mistaken for one
of those words: they are reserved, so that a variable called `expf` was renamed before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from layoutproof.lowering.codegen.c_math import MATH_NAMES
from layoutproof.lowering.codegen.names import RESERVED, Names, entry_name

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
    """A line of C in the words of OpenCL C."""
    return _WORD.sub(lambda m: _WORDS[m[0]], _CONSTANT.sub(_constant, text))


def _constant(match: re.Match[str]) -> str:
    unsigned, sign, digits = match.groups()
    literal = f"{sign}{digits}{'ul' if unsigned else 'l'}"
    return f"({literal})" if sign else literal


_KEYWORDS = """
kernel global local constant private generic pipe read_only write_only read_write half uchar ushort uint ulong complex imaginary
quad image1d_t image1d_array_t image1d_buffer_t image2d_t image2d_array_t image2d_depth_t image2d_array_depth_t image3d_t sampler_t
event_t queue_t ndrange_t clk_event_t reserve_id_t atomic_int atomic_uint atomic_long atomic_ulong atomic_float atomic_double
CHAR_BIT CHAR_MAX CHAR_MIN INT_MAX INT_MIN LONG_MAX LONG_MIN SCHAR_MAX SCHAR_MIN SHRT_MAX SHRT_MIN UCHAR_MAX USHRT_MAX UINT_MAX
ULONG_MAX MAXFLOAT HUGE_VALF M_E M_PI FLT_MAX FLT_MIN FLT_EPSILON DBL_MAX DBL_MIN DBL_EPSILON
memory_order_acq_rel memory_order_relaxed memory_order_seq_cst memory_scope_work_item memory_scope_device
get_work_dim get_global_size get_global_id get_local_size get_local_id get_num_groups get_group_id get_global_offset
barrier mem_fence read_mem_fence write_mem_fence prefetch printf any all select clamp degrees max min mix radians step smoothstep sign
cross dot distance length normalize mad mad24 mul24 mad_hi mul_hi mad_sat add_sat sub_sat hadd rhadd clz ctz popcount rotate upsample
abs_diff isequal isnotequal isgreater isless isordered isunordered isnormal acos acosh acospi asin asinh asinpi atan2 atanh atanpi
cbrt copysign cospi erfc exp10 expm1 fdim fmod fract hypot ilogb lgamma_r log1p logb maxmag minmag modf nan nextafter pown powr
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
