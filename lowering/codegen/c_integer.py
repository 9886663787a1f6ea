"""Integer arithmetic as C text: plain operators where the ranges of the operands allow, helper functions elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from layoutproof.ir import interval
from layoutproof.ir.dtype import INT32, INT64, DType, Kind
from layoutproof.ir.expr import BinaryOp
from layoutproof.ir.interval import OPERATIONS, Interval
from layoutproof.lowering.codegen.c_types import RANGE, SUFFIX, CType, storage_type, value_type
from layoutproof.lowering.codegen.fragments import Binding, Fragment, call, convert, narrowed, operation

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
        return Fragment(f"{value.text}u" if ctype is CType.U32 else f"UINT64_C({value.text})", Binding.PRIMARY, ctype, value.values)
    return convert(value, ctype)


@dataclass(slots=True)
class Integers:
    """Writes integer operations. `index_type` is the type of index arithmetic; `overflows` notes an index that may not fit 32 bits."""

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
        if op in (BinaryOp.SHL, BinaryOp.SHR) and dtype.bits == 64 and not b.range.within(_NARROW_SHIFTS) and a.ctype is not CType.I64:
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
