"""Data types in C, and fragments of expression text that know their C type, precedence and range.

Half-precision floats (float16, bfloat16) are stored as 16 bits and computed in `float`, rounded after every operation;
bool is stored as `int8_t`; integers narrower than 32 bits are computed in `int32_t` and wrapped where they may leave
their range.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum

from layoutproof.ir.dtype import DType, Kind
from layoutproof.ir.interval import BOOL, Interval


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


def model_name_of(dtype: DType) -> str:
    """`f16` or `bf16`, as in the names of helper functions."""
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
    """An exact float constant: in hexadecimal, unless it is a small whole number."""
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


class Binding(IntEnum):
    """Precedence of C's operators, loosest first."""

    CHOICE = 3
    OR = 4
    AND = 5
    BITOR = 6
    BITXOR = 7
    BITAND = 8
    EQUAL = 9
    RELATION = 10
    SHIFT = 11
    SUM = 12
    PRODUCT = 13
    UNARY = 14
    PRIMARY = 16


# Compilers warn about these among arithmetic, although C defines the result: their operands always get parentheses.
_SHY = {Binding.BITOR, Binding.BITXOR, Binding.BITAND, Binding.SHIFT}


@dataclass(frozen=True, slots=True)
class Fragment:
    """An expression's text. `values` is the range of an integer, by default that of its C type."""

    text: str
    binding: Binding
    ctype: CType
    values: Interval | None = None

    @property
    def range(self) -> Interval:
        """The integers it can be. Raises ValueError for a float."""
        if self.values is not None:
            return self.values
        if self.ctype not in RANGE:
            raise ValueError(f"{self.text} is a {self.ctype}")
        return RANGE[self.ctype]

    def at(self, binding: Binding) -> str:
        """The text, in parentheses where it binds looser than `binding`."""
        return f"({self.text})" if self.binding < binding else self.text


def loaded(text: str, dtype: DType, helpers: set[str], values: Interval | None = None) -> Fragment:
    """The value of one stored lane; adds the helpers that it needs."""
    if dtype.is_bool:
        return Fragment(f"{text} != 0", Binding.EQUAL, CType.I32, BOOL)
    if is_half(dtype):
        name = f"lp_{model_name_of(dtype)}_to_f32"
        helpers.add(name)
        return Fragment(f"{name}({text})", Binding.PRIMARY, CType.F32)
    return Fragment(text, Binding.PRIMARY, value_type(dtype), values)


def operation(symbol: str, binding: Binding, a: Fragment, b: Fragment) -> str:
    """`a symbol b`, never regrouped: the right operand keeps parentheses where it binds equally."""
    if binding in (Binding.RELATION, Binding.EQUAL):
        return f"{_signless(a, Binding.SHIFT)} {symbol} {_signless(b, Binding.SHIFT)}"
    if binding is Binding.OR:
        return f"{_mixed(a, Binding.AND)} {symbol} {_mixed(b, Binding.AND)}"
    if binding is Binding.AND:
        return f"{_mixed(a, Binding.BITOR)} {symbol} {_mixed(b, Binding.BITOR)}"
    left = Binding.UNARY if binding in _SHY else binding
    right = f"({b.text})" if b.binding <= left < Binding.UNARY or b.text.startswith("-") else _signless(b, left)
    return f"{_signless(a, left)} {symbol} {right}"


def _signless(a: Fragment, binding: Binding) -> str:
    """An operand without a leading `!`, which compilers warn about there."""
    return f"({a.text})" if a.text.startswith("!") else a.at(binding)


def _mixed(a: Fragment, loosest: Binding) -> str:
    """An operand of `&&` or `||`: parentheses for the other connective and for choices."""
    same = Binding.OR if loosest is Binding.AND else Binding.AND
    return a.text if a.binding > loosest or a.binding == same else f"({a.text})"


def call(name: str, ctype: CType, *arguments: Fragment, values: Interval | None = None) -> Fragment:
    """`name(arguments)`."""
    return Fragment(f"{name}({', '.join(a.text for a in arguments)})", Binding.PRIMARY, ctype, values)


def convert(value: Fragment, ctype: CType) -> Fragment:
    """`(ctype)value`; unchanged where it has that type already."""
    if value.ctype is ctype:
        return value
    text = f"({ctype.value}){value.at(Binding.UNARY)}"
    kept = value.values if value.values is not None and ctype in RANGE and value.values.within(RANGE[ctype]) else None
    if kept is None and value.ctype in RANGE and ctype in RANGE and RANGE[value.ctype].within(RANGE[ctype]):
        kept = RANGE[value.ctype]
    return Fragment(text, Binding.UNARY, ctype, kept)


def narrowed(value: Fragment, storage: str, values: Interval) -> Fragment:
    """`(storage)value` for a type narrower than `int32_t`: the value wraps to that type and is computed on as
    `int32_t`.
    """
    return Fragment(f"({storage}){value.at(Binding.UNARY)}", Binding.UNARY, CType.I32, values)


def choice(condition: Fragment, then: Fragment, otherwise: Fragment) -> Fragment:
    """`condition ? then : otherwise`, both sides of one C type."""
    text = f"{condition.at(Binding.OR)} ? {then.at(Binding.OR)} : {otherwise.at(Binding.OR)}"
    values = then.range.hull(otherwise.range) if then.ctype in RANGE else None
    return Fragment(text, Binding.CHOICE, then.ctype, values)


def bounded(value: Fragment, values: Interval) -> Fragment:
    """The same text, known to lie in `values` as well."""
    return replace(value, values=value.range.clamp(values))
