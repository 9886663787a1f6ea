"""How data types look in C: how an element is stored, in which type its arithmetic is done, how a constant is written.

Half-precision floats (float16, bfloat16) are stored as 16 bits and computed in `float`, rounded after every operation; bool is
stored as `int8_t`; integers narrower than 32 bits are computed in `int32_t` and cut back where they may leave their range.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum

from layoutproof.ir.dtype import DType, Kind
from layoutproof.ir.interval import Interval


class CType(StrEnum):
    """The types in which generated code computes."""

    I32 = "int32_t"
    I64 = "int64_t"
    U32 = "uint32_t"
    U64 = "uint64_t"
    F32 = "float"
    F64 = "double"


SUFFIX: Mapping[CType, str] = {
    CType.I32: "i32", CType.I64: "i64", CType.U32: "u32", CType.U64: "u64", CType.F32: "f32", CType.F64: "f64",
}  # fmt: skip

RANGE: Mapping[CType, Interval] = {
    CType.I32: Interval(-(1 << 31), (1 << 31) - 1),
    CType.I64: Interval(-(1 << 63), (1 << 63) - 1),
    CType.U32: Interval(0, (1 << 32) - 1),
    CType.U64: Interval(0, (1 << 64) - 1),
}


def is_half(dtype: DType) -> bool:
    """Whether a type is stored in 16 bits and computed in `float`."""
    return dtype.is_float and dtype.bits == 16


def half_name(dtype: DType) -> str:
    """`f16` or `bf16`, as the helper functions are called."""
    return "bf16" if dtype.kind is Kind.BFLOAT else "f16"


def storage_type(dtype: DType) -> str:
    """The C type of one lane in memory and in a function's signature."""
    if dtype.is_bool:
        return "int8_t"
    if is_half(dtype):
        return "uint16_t"
    if dtype.is_float:
        return "float" if dtype.bits == 32 else "double"
    if dtype.is_integer:
        return f"{dtype.kind.value}{dtype.bits}_t"
    raise ValueError(f"{dtype} has no storage type")


def value_type(dtype: DType) -> CType:
    """The type in which one lane is computed."""
    if dtype.is_float:
        return CType.F64 if dtype.bits == 64 else CType.F32
    if dtype.is_integer and dtype.bits == 64:
        return CType.I64 if dtype.kind is Kind.INT else CType.U64
    if dtype.kind is Kind.UINT and dtype.bits == 32:
        return CType.U32
    if dtype.is_integer or dtype.is_bool:
        return CType.I32
    raise ValueError(f"{dtype} is not computed with")


def variable_type(dtype: DType) -> str:
    """The type of a C variable that holds one lane."""
    if dtype.is_bool:
        return "bool"
    return value_type(dtype).value if dtype.is_float else storage_type(dtype)


def int_literal(value: int, ctype: CType) -> str:
    """An integer constant whose C type is `ctype`."""
    match ctype:
        case CType.I32:
            return "INT32_MIN" if value == RANGE[CType.I32].low else str(value)
        case CType.I64:
            return "INT64_MIN" if value == RANGE[CType.I64].low else f"INT64_C({value})"
        case CType.U32:
            return f"{value}u"
        case CType.U64:
            return f"UINT64_C({value})"
        case _:
            raise ValueError(f"an integer constant of type {ctype}")


def float_literal(value: float, ctype: CType) -> str:
    """A float constant, written so that it is exact: in hexadecimal, unless it is a small whole number."""
    suffix = "f" if ctype is CType.F32 else ""
    if math.isnan(value):
        return "NAN" if ctype is CType.F32 else "(double)NAN"
    if math.isinf(value):
        name = "INFINITY" if ctype is CType.F32 else "(double)INFINITY"
        return name if value > 0 else f"-{name}"
    if value == int(value) and abs(value) < 1e6:
        return f"{value:.1f}{suffix}"  # -0.0 keeps its sign here
    return f"{_short_hex(value)}{suffix}"


def _short_hex(value: float) -> str:
    mantissa, exponent = value.hex().split("p")
    head, _, digits = mantissa.partition(".")
    digits = digits.rstrip("0")
    return f"{head}.{digits}p{exponent}" if digits else f"{head}p{exponent}"
