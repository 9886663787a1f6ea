"""Pieces of C expression text that know how tightly they bind, what C type they have and which integers they can be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

from layoutproof.ir.dtype import DType
from layoutproof.ir.interval import BOOL, Interval
from layoutproof.lowering.codegen.c_types import RANGE, CType, half_name, is_half, value_type


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
    """An expression's text. `values` is the range of an integer (all of its C type's when nothing better is known)."""

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
    """What stands for one stored lane of a type, as a value to compute with; names of helpers that this takes are added."""
    if dtype.is_bool:
        return Fragment(f"{text} != 0", Binding.EQUAL, CType.I32, BOOL)
    if is_half(dtype):
        name = f"lp_{half_name(dtype)}_to_f32"
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
    """An operand that may not begin with `!`, which compilers take for a slip there."""
    return f"({a.text})" if a.text.startswith("!") else a.at(binding)


def _mixed(a: Fragment, loosest: Binding) -> str:
    """An operand of `&&` or `||`: parentheses for the other connective and for choices."""
    same = Binding.OR if loosest is Binding.AND else Binding.AND
    return a.text if a.binding > loosest or a.binding == same else f"({a.text})"


def call(name: str, ctype: CType, *arguments: Fragment, values: Interval | None = None) -> Fragment:
    """`name(arguments)`."""
    return Fragment(f"{name}({', '.join(a.text for a in arguments)})", Binding.PRIMARY, ctype, values)


def convert(value: Fragment, ctype: CType) -> Fragment:
    """`(ctype)value`; nothing is written where it has that type already."""
    if value.ctype is ctype:
        return value
    text = f"({ctype.value}){value.at(Binding.UNARY)}"
    kept = value.values if value.values is not None and ctype in RANGE and value.values.within(RANGE[ctype]) else None
    if kept is None and value.ctype in RANGE and ctype in RANGE and RANGE[value.ctype].within(RANGE[ctype]):
        kept = RANGE[value.ctype]
    return Fragment(text, Binding.UNARY, ctype, kept)


def narrowed(value: Fragment, storage: str, values: Interval) -> Fragment:
    """`(storage)value` for a type narrower than `int32_t`: the value wraps to that type and is computed on as `int32_t`."""
    return Fragment(f"({storage}){value.at(Binding.UNARY)}", Binding.UNARY, CType.I32, values)


def choice(condition: Fragment, then: Fragment, otherwise: Fragment) -> Fragment:
    """`condition ? then : otherwise`, both sides of one C type."""
    text = f"{condition.at(Binding.OR)} ? {then.at(Binding.OR)} : {otherwise.at(Binding.OR)}"
    values = then.range.hull(otherwise.range) if then.ctype in RANGE else None
    return Fragment(text, Binding.CHOICE, then.ctype, values)


def bounded(value: Fragment, values: Interval) -> Fragment:
    """The same text, known to lie in `values` as well."""
    return replace(value, values=value.range.clamp(values))
