"""Expressions as C text with the program's meaning on every value; plain C operators where the ranges allow them.

Index arithmetic (loop variables, shapes, and what is computed from them alone) is over the integers, in the index type;
an operation whose result may not fit 32 bits is noted, so that the caller can take the wider type. Value arithmetic
wraps in its own width. Lanes are written one at a time, by the variable of the surrounding loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from layoutproof.ir import interval
from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import DType, Kind
from layoutproof.ir.expr import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Ramp,
    Select,
    Var,
)
from layoutproof.ir.interval import Interval
from layoutproof.ir.intrinsics import Call, Limit, LimitKind, Reinterpret
from layoutproof.ir.operators import CompareOp, LogicalOp
from layoutproof.ir.semantics import max_finite
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.codegen.c_arithmetic import Integers, coerce, emit_call, float_binary, rounded
from layoutproof.lowering.codegen.c_memory import access_name
from layoutproof.lowering.codegen.c_types import (
    Binding,
    CType,
    Fragment,
    call,
    choice,
    convert,
    float_literal,
    int_literal,
    is_half,
    loaded,
    model_name_of,
    narrowed,
    operation,
    storage_type,
    value_type,
)
from layoutproof.lowering.codegen.calling_convention import MemoryMap


@dataclass(frozen=True, slots=True)
class Mode:
    """How an expression is used: as index arithmetic or not, and which lane is wanted (None for one-lane types)."""

    index: bool = False
    lane: Fragment | None = None

    @property
    def scalar(self) -> Mode:
        """The mode of a one-lane operand."""
        return replace(self, lane=None)


VALUE = Mode()
INDEX = Mode(index=True)

_SYMBOLS: Mapping[CompareOp, tuple[str, Binding]] = {
    CompareOp.EQ: ("==", Binding.EQUAL),
    CompareOp.NE: ("!=", Binding.EQUAL),
    CompareOp.LT: ("<", Binding.RELATION),
    CompareOp.LE: ("<=", Binding.RELATION),
    CompareOp.GT: (">", Binding.RELATION),
    CompareOp.GE: (">=", Binding.RELATION),
}


@dataclass(slots=True)
class Expressions:
    """Writes expressions.

    `variables` are the fragments of program variables, `index_names` the names used in index arithmetic, `pointers` the
    C names of data variables; `helpers` collects the helpers used.
    """

    memory: MemoryMap
    integers: Integers
    variables: dict[str, Fragment] = field(default_factory=dict)
    index_names: set[str] = field(default_factory=set)
    pointers: dict[str, str] = field(default_factory=dict)
    target: str = "the C target"

    @property
    def helpers(self) -> set[str]:
        """Names of helper functions needed so far."""
        return self.integers.helpers

    def name_index(self, name: str, index: bool) -> None:
        """Set whether a name is index arithmetic."""
        (self.index_names.add if index else self.index_names.discard)(name)

    def emit(self, expr: Expr, mode: Mode = VALUE) -> Fragment:
        """One lane of `expr`. Raises LayoutproofError (LP402) for an expression that has no place in lowered code."""
        emitter = self.emitters().get(type(expr))
        if emitter is None:
            raise error(codes.NOT_LOWERED, f"{self.target} has no {type(expr).__name__} expressions", expr.span)
        return emitter(self, expr, mode)

    def emitters(self) -> Mapping[type[Expr], Callable[[Any, Any, Mode], Fragment]]:
        """How each type of expression is written."""
        return EMITTERS

    def emit_index(self, expr: Expr, lane: Fragment | None = None) -> Fragment:
        """`expr` as an index: a signed integer."""
        found = self.emit(expr, Mode(index=True, lane=lane))
        return self.integers.as_index(found)

    def emit_condition(self, expr: Expr) -> Fragment:
        """A one-lane truth value."""
        return self.emit(expr, VALUE)

    def is_index(self, expr: Expr) -> bool:
        """Whether `expr` is index arithmetic: signed integers made of index variables and constants alone."""
        if isinstance(expr, Var):
            return expr.name in self.index_names
        if isinstance(expr, IntImm):
            return expr.dtype.kind is Kind.INT or expr.dtype.is_bool
        if isinstance(expr, Cast):
            return expr.dtype.kind is Kind.INT and expr.value.dtype.kind is Kind.INT and self.is_index(expr.value)
        if isinstance(expr, Compare | Logical):
            return self.is_index(expr.lhs) and self.is_index(expr.rhs)
        if isinstance(expr, Not):
            return self.is_index(expr.operand)
        if expr.dtype.kind is not Kind.INT:
            return False
        if isinstance(expr, Binary):
            return self.is_index(expr.lhs) and self.is_index(expr.rhs)
        if isinstance(expr, Select | IfThenElseExpr):
            return all(self.is_index(part) for part in (expr.condition, expr.then, expr.otherwise))
        if isinstance(expr, Ramp):
            return self.is_index(expr.base) and self.is_index(expr.stride)
        return isinstance(expr, Broadcast) and self.is_index(expr.value)

    def constant(self, expr: IntImm, mode: Mode) -> Fragment:
        """An integer or truth value."""
        ctype = value_type(expr.dtype)
        if ctype is CType.I64 and interval.point(expr.value).within(interval.INT32):
            ctype = CType.I32  # a plain number; operations widen it where needed
        text = int_literal(expr.value, ctype)
        return Fragment(
            text, Binding.UNARY if text.startswith("-") else Binding.PRIMARY, ctype, interval.point(expr.value)
        )

    def variable(self, expr: Var, mode: Mode) -> Fragment:
        """A variable; of several lanes, the one wanted."""
        found = self.variables.get(expr.name)
        if found is None:
            raise error(codes.NOT_LOWERED, f"the variable {expr.name} has no value here", expr.span)
        if expr.dtype.lanes == 1:
            return found
        assert mode.lane is not None
        return replace(found, text=f"{found.text}[{mode.lane.text}]")

    def floating(self, expr: FloatImm, mode: Mode) -> Fragment:
        """A float constant."""
        return _float(expr.value, expr.dtype)

    def binary(self, expr: Binary, mode: Mode) -> Fragment:
        """Arithmetic on two operands of one type."""
        a, b = self.emit(expr.lhs, mode), self.emit(expr.rhs, mode)
        if expr.dtype.is_float:
            return float_binary(expr.op, a, b, expr.dtype, self.helpers)
        return self.integers.binary(expr.op, a, b, expr.dtype, mode.index and expr.dtype.kind is Kind.INT)

    def compare(self, expr: Compare, mode: Mode) -> Fragment:
        """A comparison; of index arithmetic, over the integers."""
        index = expr.lhs.dtype.kind is Kind.INT and self.is_index(expr.lhs) and self.is_index(expr.rhs)
        inner = replace(mode, index=index)
        a, b = self.emit(expr.lhs, inner), self.emit(expr.rhs, inner)
        if expr.lhs.dtype.kind is Kind.UINT:
            a, b = (coerce(x, value_type(expr.lhs.dtype)) for x in (a, b))
        symbol, binding = _SYMBOLS[expr.op]
        return Fragment(operation(symbol, binding, a, b), binding, CType.I32, interval.BOOL)

    def logical(self, expr: Logical, mode: Mode) -> Fragment:
        """`and`, `or`: the right side is evaluated only if needed."""
        symbol, binding = ("&&", Binding.AND) if expr.op is LogicalOp.AND else ("||", Binding.OR)
        a, b = self.emit(expr.lhs, mode), self.emit(expr.rhs, mode)
        return Fragment(operation(symbol, binding, a, b), binding, CType.I32, interval.BOOL)

    def negation(self, expr: Not, mode: Mode) -> Fragment:
        """`not`."""
        return Fragment(f"!{self.emit(expr.operand, mode).at(Binding.UNARY)}", Binding.UNARY, CType.I32, interval.BOOL)

    def choose(self, expr: Select | IfThenElseExpr, mode: Mode) -> Fragment:
        """A choice. C evaluates one side; the other one has no effect, since traps are excluded by proof."""
        condition = self.emit(expr.condition, mode if expr.condition.dtype.lanes > 1 else mode.scalar)
        then, otherwise = self.emit(expr.then, mode), self.emit(expr.otherwise, mode)
        if not expr.dtype.is_float:
            then, otherwise = self.integers.alike(then, otherwise, expr.dtype)
        return choice(condition, then, otherwise)

    def cast(self, expr: Cast, mode: Mode) -> Fragment:
        """A conversion; between index types the identity."""
        if mode.index and expr.dtype.kind is Kind.INT and self.is_index(expr.value):
            return self.emit(expr.value, mode)
        source, target = expr.value.dtype.element, expr.dtype.element
        value = self.emit(expr.value, replace(mode, index=False))
        return _convert(value, source, target, self.helpers)

    def reinterpret(self, expr: Reinterpret, mode: Mode) -> Fragment:
        """The bits of an integer as a float."""
        value, dtype = self.emit(expr.value, replace(mode, index=False)), expr.dtype.element
        if is_half(dtype):
            bits = narrowed(value, "uint16_t", interval.of_type(DType(Kind.UINT, 16)))
            return loaded(bits.text, dtype, self.helpers)
        wide = dtype.bits == 64
        name = f"lp_{'f64' if wide else 'f32'}_of_bits"
        self.helpers.add(name)
        return call(name, value_type(dtype), convert(value, CType.U64 if wide else CType.U32))

    def ramp(self, expr: Ramp, mode: Mode) -> Fragment:
        """`base + lane * stride`."""
        assert mode.lane is not None
        base, stride = self.emit(expr.base, mode.scalar), self.emit(expr.stride, mode.scalar)
        dtype = expr.base.dtype
        index = mode.index and dtype.kind is Kind.INT
        one = stride.range == interval.point(1)
        if mode.lane.range == interval.point(0):
            return base
        if mode.lane.range.is_point and stride.range.is_point:
            number = stride.range.low * mode.lane.range.low
            if interval.point(number).within(interval.of_type(dtype)):
                return self.integers.sum(base, self.constant(IntImm(number, dtype), mode), dtype, index)
        offset = mode.lane if one else self.integers.product(stride, mode.lane, dtype, index)
        return self.integers.sum(base, offset, dtype, index)

    def broadcast(self, expr: Broadcast, mode: Mode) -> Fragment:
        """The same in every lane."""
        return self.emit(expr.value, mode.scalar)

    def limit(self, expr: Limit, mode: Mode) -> Fragment:
        """A special value of a type."""
        if expr.dtype.is_float:
            values = {
                LimitKind.INFINITY: float("inf"),
                LimitKind.MAX: max_finite(expr.dtype),
                LimitKind.MIN: -max_finite(expr.dtype),
            }
            return _float(values[expr.kind], expr.dtype)
        return self.constant(
            IntImm(expr.dtype.max_int if expr.kind is LimitKind.MAX else expr.dtype.min_int, expr.dtype), mode
        )

    def math(self, expr: Call, mode: Mode) -> Fragment:
        """A math function."""
        arguments = [self.emit(a, replace(mode, index=False)) for a in expr.arguments]
        return emit_call(expr.function, arguments, expr.dtype.element, self.helpers)

    def load(self, expr: BufferLoad, mode: Mode) -> Fragment:
        """One lane of a load."""
        buffer = expr.buffer
        memory = self.memory.at(buffer)
        storage = storage_type(buffer.dtype)
        address = self.address(expr, mode.lane)
        pointer = self.pointers[buffer.data.name]
        if memory.mixed:
            name = access_name("load", storage)
            self.helpers.add(name)
            text = f"{name}({pointer}, {address.text})"
        else:
            text = f"{pointer}[{address.text}]"
        element = buffer.dtype.element
        return loaded(text, element, self.helpers, None if element.is_float else interval.of_type(element))

    def address(self, access: Any, lane: Fragment | None) -> Fragment:
        """The position, in single lanes from the start of the memory, of one lane of `buffer[index]` (a load or a
        store).
        """
        buffer = access.buffer
        inner = buffer.dtype.lanes
        index_type = access.indices[-1].dtype if access.indices else None
        outer = index_type.lanes if index_type is not None else 1
        index_lane, element_lane = _split_lane(lane, outer, inner)
        index = self.emit_index(access.indices[-1], index_lane) if access.indices else _zero()
        offset = self.emit_index(buffer.elem_offset)
        if offset.range != interval.point(0):
            index = self.integers.index_sum(index, offset)
        if inner > 1:
            index = self.integers.index_product(
                Fragment(str(inner), Binding.PRIMARY, CType.I32, interval.point(inner)), index
            )
            assert element_lane is not None
            index = self.integers.index_sum(index, element_lane)
        return index


def _zero() -> Fragment:
    return Fragment("0", Binding.PRIMARY, CType.I32, interval.point(0))


def _split_lane(lane: Fragment | None, outer: int, inner: int) -> tuple[Fragment | None, Fragment | None]:
    """The lane of the index and the lane of the element, of `lane` among `outer * inner`."""
    if outer == 1 or inner == 1:
        return (lane if outer > 1 else None), (lane if inner > 1 else None)
    assert lane is not None
    size = Fragment(str(inner), Binding.PRIMARY, CType.I32, interval.point(inner))
    return (
        Fragment(operation("/", Binding.PRODUCT, lane, size), Binding.PRODUCT, CType.I32, Interval(0, outer - 1)),
        Fragment(operation("%", Binding.PRODUCT, lane, size), Binding.PRODUCT, CType.I32, Interval(0, inner - 1)),
    )


def _float(value: float, dtype: DType) -> Fragment:
    ctype = value_type(dtype)
    text = float_literal(value, ctype)
    return Fragment(text, Binding.UNARY if text[0] in "-(" else Binding.PRIMARY, ctype)


def _convert(value: Fragment, source: DType, target: DType, helpers: set[str]) -> Fragment:
    """`semantics.cast_value` on one lane."""
    if target.is_bool:
        if source.is_bool:
            return value
        zero = Fragment("0.0f" if source.is_float else "0", Binding.PRIMARY, value.ctype)
        return Fragment(operation("!=", Binding.EQUAL, value, zero), Binding.EQUAL, CType.I32, interval.BOOL)
    if target.is_float:
        return _to_float(value, source, target, helpers)
    ctype, values = value_type(target), interval.of_type(target)
    if source.is_float:
        found = convert(value, ctype)
        return narrowed(found, storage_type(target), values) if target.bits < 32 else found
    if value.range.within(values):
        signed = value.ctype in (CType.I32, CType.I64)
        return value if signed and target.kind is Kind.INT else coerce(value, ctype)
    return narrowed(value, storage_type(target), values) if target.bits < 32 else convert(value, ctype)


def _to_float(value: Fragment, source: DType, target: DType, helpers: set[str]) -> Fragment:
    ctype = value_type(target)
    if not is_half(target):
        return convert(value, ctype)
    if source.is_float:
        if value.ctype is CType.F64:
            name = f"lp_round_{model_name_of(target)}_from_f64"
            helpers.add(name)
            return call(name, CType.F32, value)
        narrow_enough = is_half(source) and source == target
        return value if narrow_enough else rounded(value, target, helpers)
    name = f"lp_round_{model_name_of(target)}_from_f64"
    helpers.add(name)
    if value.range.within(Interval(-(1 << 53), 1 << 53)):
        return call(name, CType.F32, convert(value, CType.F64))
    odd = f"lp_odd_f64_from_{'u64' if value.ctype is CType.U64 else 'i64'}"
    helpers.add(odd)
    return call(name, CType.F32, call(odd, CType.F64, value))


EMITTERS: Mapping[type[Expr], Callable[[Expressions, Any, Mode], Fragment]] = {
    IntImm: Expressions.constant,
    FloatImm: Expressions.floating,
    Var: Expressions.variable,
    Binary: Expressions.binary,
    Compare: Expressions.compare,
    Logical: Expressions.logical,
    Not: Expressions.negation,
    Select: Expressions.choose,
    IfThenElseExpr: Expressions.choose,
    Cast: Expressions.cast,
    Reinterpret: Expressions.reinterpret,
    Ramp: Expressions.ramp,
    Broadcast: Expressions.broadcast,
    BufferLoad: Expressions.load,
    Call: Expressions.math,
    Limit: Expressions.limit,
}
HANDLED = frozenset(EMITTERS)
