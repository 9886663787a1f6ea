"""Operands while an expression is read: numbers without a type until they meet one that has it, TVM's rule for two
operands of different types, ranges, and messages where a node refuses an operand.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import Span, error
from layoutproof.ir.dtype import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, INT64, DType, Kind
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
    Select,
    const,
    is_zero,
    match_operands,
)
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.node import Node
from layoutproof.ir.operators import COMPARISONS, BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.script.parsing import Text
from layoutproof.ir.semantics import int_to_float, round_float
from layoutproof.ir.text import python_number

Literal = int | float | bool


@dataclass(frozen=True, slots=True)
class Weak:
    """A value without a type: `build` makes it one of a given type (lanes included), raising LayoutproofError where it
    cannot be.

    `default` is the type it has when nothing decides; None where there is none. `literal` is the number, where it is a
    single one, `number` what Python makes of the arithmetic, where the text is arithmetic on numbers only.
    """

    node: ast.expr
    build: Callable[[DType], Expr]
    default: DType | None
    literal: Literal | None = None
    number: Literal | None = None


Value = Expr | Weak

# Functions of a constant that TVM computes with the digits in the text, whatever its type.
_KEEPS_DIGITS = frozenset({"abs", "ceil", "floor", "trunc", "round", "nearbyint"})
_ORDER = (BOOL, INT32, INT64, FLOAT32, FLOAT64)


def default_type(literal: Literal) -> DType | None:
    """The type of a bare constant: int32 or int64 as it fits, float32, bool; None for an integer past int64."""
    if isinstance(literal, bool):
        return BOOL
    if isinstance(literal, float):
        return FLOAT32
    if INT32.min_int <= literal <= INT32.max_int:
        return INT32
    return INT64 if INT64.min_int <= literal <= INT64.max_int else None


def joint_default(a: Weak, b: Weak) -> DType | None:
    """The default type of an operation on two untyped values: the wider of theirs."""
    known = [d for d in (a.default, b.default) if d is not None]
    return max(known, key=_ORDER.index) if known else None


def joint_type(a: DType, b: DType) -> DType | None:
    """The type that operands of two types are brought to, lanes aside; None where versions of TVM differ.

    A float is wider than any integer, an integer than a truth value; of two of a kind the one of more bits, and of a
    signed and an unsigned integer of one width the unsigned one.
    """
    if a.element == b.element:
        return a.element
    if {a.element, b.element} == {FLOAT16, BFLOAT16}:
        return None
    return max(a.element, b.element, key=lambda d: (d.is_float, d.is_integer, d.bits, d.kind is Kind.UINT))


def compared(op: CompareOp, a: Literal, b: Literal) -> bool:
    """What Python makes of `a op b`."""
    return bool(COMPARISONS[op](a, b))


N = TypeVar("N", bound=Node)

_TAKES_OTHERS_TYPE = frozenset({BinaryOp.BITAND, BinaryOp.BITOR, BinaryOp.BITXOR, BinaryOp.SHL, BinaryOp.SHR})

_INTEGER_ONLY = frozenset(
    {BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD, BinaryOp.SHL, BinaryOp.SHR}
)


def _typed_help(first: DType, second: DType, a: Value, b: Value) -> str:
    """What to write where two types do not go together: the number in the other type, or a cast."""
    for number, wanted in ((a, second), (b, first)):
        if isinstance(number, Weak) and number.literal is not None:
            return f"write T.{wanted.element}({number.literal})"
    return f'write T.Cast("{first.element}", ...)'


class OperandReader:
    """Builds the nodes of one text from their operands."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self._numbers: dict[int, tuple[Expr, float]] = {}

    def written(self, value: Expr) -> float | None:
        """The number that the text has for a constant, where its type has rounded it."""
        found = self._numbers.get(id(value))
        return found[1] if found is not None else None

    def note_written(self, value: Expr, number: float | None) -> Expr:
        """The value, of which it is known that the text has this number: TVM keeps its digits, and a conversion starts
        from them, `D[i] = T.float32(0.1)` from 0.1 where D holds float64.
        """
        if isinstance(value, FloatImm) and number is not None and math.isfinite(number) and number != value.value:
            self._numbers[id(value)] = value, number  # the value is kept, so that its id stays its own
        return value

    def cast(self, dtype: DType, value: Expr, span: Span | None = None) -> Expr:
        """A conversion, which begins at the number that the text has; so does that of its broadcast."""
        if isinstance(value, Broadcast) and self.written(value.value) is not None and value.lanes == dtype.lanes:
            return Broadcast(self.cast(dtype.element, value.value, span), value.lanes, span=span)
        if self._is_folded(value):
            message = f"TVM computes this constant with the digits in the text, and converts them to {dtype}"
            raise error(codes.WRONG_TYPE, message, value.span, help=f"write it as a number of type {dtype}")
        number = self._digits(value, dtype)
        if number is None or dtype.is_bool or dtype.lanes != 1:
            return Cast(dtype, value, span=span)
        rounded = round_float(number, dtype) if dtype.is_float else number
        if math.isinf(rounded):
            return Cast(dtype, value, span=span)
        if dtype.is_float:
            return self.note_written(FloatImm(rounded, dtype, span=span), number)
        return Cast(dtype, FloatImm(number, FLOAT64, span=value.span), span=span)

    def _digits(self, value: Expr, dtype: DType) -> float | None:
        """The number that a conversion to `dtype` starts from; None if it is the value's, or is kept by its type."""
        found = self.written(value)
        if not dtype.is_float or found is not None:
            return found
        if isinstance(value, IntImm) and value.dtype.is_integer:
            whole = float(value.value)  # TVM goes by way of a float64
            return whole if int_to_float(value.value, dtype) != whole else None
        if isinstance(value, FloatImm) and math.isfinite(value.value):
            return value.value if round_float(value.value, dtype) != value.value else None
        return None

    def _is_folded(self, value: Expr) -> bool:
        """Whether TVM makes a constant of the value whose digits its type has not rounded."""
        match value:
            case Call(function=function, arguments=(operand,)) if function in _KEEPS_DIGITS:
                return self._has_digits(operand)
            case Binary(op=BinaryOp.MIN | BinaryOp.MAX, lhs=a, rhs=b):
                operands = (a, b)
                constant = all(isinstance(each, FloatImm) or self._is_folded(each) for each in operands)
                return constant and any(map(self._has_digits, operands))
            case IfThenElseExpr(condition=IntImm(), then=a, otherwise=b):
                return self._has_digits(a) or self._has_digits(b)
            case _:
                return False

    def _has_digits(self, value: Expr) -> bool:
        return self.written(value) is not None or self._is_folded(value)

    def strong(self, value: Value, dtype: DType | None = None) -> Expr:
        """The value with a type: its own, else `dtype`, else its default."""
        if isinstance(value, Expr):
            return value
        wanted = dtype if dtype is not None else value.default
        if wanted is None:
            if value.literal is not None:
                raise self.text.fail(codes.NUMBER_RANGE, "the number does not fit 64 bits", value.node)
            raise self.text.fail(codes.WRONG_TYPE, 'the type is not known here: write T.undef(dtype="...")', value.node)
        return value.build(wanted)

    def make(self, node: ast.AST, factory: Callable[..., N], *arguments: Any, code: str = codes.WRONG_TYPE) -> N:
        """A node with its place; what the node refuses becomes a message there."""
        try:
            return factory(*arguments, span=self.text.span(node))
        except (TypeError, ValueError) as problem:
            raise self.text.fail(code, str(problem), node) from problem

    def matched(self, node: ast.expr, a: Value, b: Value) -> tuple[Expr, Expr]:
        """Both values with one type, by TVM's rule (`joint_type`); scalars are broadcast."""
        if isinstance(a, Weak) and isinstance(b, Weak):
            dtype = joint_default(a, b)
            return self.strong(a, dtype), self.strong(b, dtype)
        types = [v.dtype if isinstance(v, Expr) else v.default for v in (a, b)]
        known = [t for t in types if t is not None]
        if any(isinstance(v, Weak) and v.number is not None and v.default is None for v in (a, b)):
            self.strong(a), self.strong(b)  # one of them fits no type, and says so
        dtype = joint_type(known[0], known[-1])
        if dtype is None:
            message = f"{known[0]} and {known[-1]} meet: which one is meant differs between versions of TVM"
            raise self.text.fail(codes.WRONG_TYPE, message, node, help=f'write T.Cast("{known[0]}", ...)')
        lanes = max(t.lanes for t in known)
        return self.converted(a, dtype, lanes), self.converted(b, dtype, lanes)

    def converted(self, value: Value, dtype: DType, lanes: int = 1) -> Expr:
        """A value of a scalar type and that many lanes: a constant, or a cast; a vector keeps its lanes."""
        if isinstance(value, Weak):
            return value.build(dtype.with_lanes(lanes))
        if value.dtype.lanes == 1 < lanes:
            if self.written(value) is not None:
                value = self.converted(value, dtype)
            value = Broadcast(value, lanes)
        wanted = dtype.with_lanes(value.dtype.lanes)
        if value.dtype == wanted or Kind.HANDLE in (dtype.kind, value.dtype.kind):
            return value
        if isinstance(value, IntImm) and wanted.is_integer and wanted.min_int <= value.value <= wanted.max_int:
            return IntImm(value.value, wanted, span=value.span)
        return self.cast(wanted, value, value.span)

    def stored(self, value: Value, dtype: DType) -> Expr:
        """A value as what a cell of type `dtype` holds after it was stored there; lanes are left as they are."""
        if isinstance(value, Expr):
            return self.converted(value, dtype.element)
        if isinstance(value.number, float) and not dtype.is_float:
            return self.converted(value.build(FLOAT32.with_lanes(dtype.lanes)), dtype.element)
        return self.strong(value, dtype)

    def binary(self, node: ast.expr, op: BinaryOp, a: Value, b: Value) -> Value:
        """`a op b`; still Python's number when both are."""
        if isinstance(a, Weak) and isinstance(b, Weak):
            return self._arithmetic(node, op, a, b)
        if op in _INTEGER_ONLY:
            self.whole(node, op, a, b)
        if op in _TAKES_OTHERS_TYPE:  # a number beside `&` and `<<` has the other side's type, as TVM has it
            if isinstance(a, Weak) and isinstance(b, Expr) and type(a.number) is int:
                a = self._of_type(a, b.dtype)
            elif isinstance(b, Weak) and isinstance(a, Expr) and type(b.number) is int:
                b = self._of_type(b, a.dtype)
        return self.make(node, Binary, op, *self.matched(node, a, b))

    def _of_type(self, value: Weak, dtype: DType) -> Expr:
        """A number beside `&` or `<<`, of which TVM takes 32 bits whatever its size."""
        if value.default != INT32:
            message = "TVM takes 32 bits of a number here, and this one has more"
            raise self.text.fail(codes.NUMBER_RANGE, message, value.node, help=f"write T.{dtype.element}(...)")
        return value.build(dtype)

    def whole(self, node: ast.expr, op: BinaryOp, a: Value, b: Value) -> None:
        """Refuse a truth value in a division or a shift, as TVM does though it converts it elsewhere."""
        for value in (a, b):
            dtype = value.dtype if isinstance(value, Expr) else value.default
            if dtype is not None and dtype.is_bool:
                message = f"`{op}` takes integers, not a truth value"
                raise self.text.fail(codes.WRONG_TYPE, message, node, help='write T.Cast("int32", ...)')

    def same(self, node: ast.expr, name: str, a: Value, b: Value) -> tuple[Expr, Expr]:
        """Both operands, whose types TVM does not convert for `name`. `T.undef()` gets the other's type."""
        first, second = (v.dtype if isinstance(v, Expr) else v.default for v in (a, b))
        if first is not None and second is not None and first.element != second.element:
            message = f"the operands of {name} have types {first} and {second}, and TVM does not bring them to one"
            raise self.text.fail(codes.WRONG_TYPE, message, node, help=_typed_help(first, second, a, b))
        return self.matched(node, a, b)

    def _arithmetic(self, node: ast.expr, op: BinaryOp, a: Weak, b: Weak) -> Weak:
        """Arithmetic on numbers: as written where 32 bits hold all of it, else what Python makes of it."""
        if a.number is None or b.number is None:
            return Weak(
                node, lambda dtype: self.make(node, Binary, op, a.build(dtype), b.build(dtype)), joint_default(a, b)
            )
        try:
            number = python_number(op, a.number, b.number)
        except (ArithmeticError, TypeError, ValueError) as problem:
            raise self.text.fail(codes.NUMBER_RANGE, f"Python makes no number of this: {problem}", node) from problem
        if not a.default == b.default == default_type(number) == INT32:
            return self.literal(node, number)

        def build(dtype: DType) -> Expr:
            if dtype.element not in (INT32, INT64):
                return self.constant(node, number, dtype)
            return self.make(node, Binary, op, a.build(dtype), b.build(dtype))

        return Weak(node, build, INT32, None, number)

    def compare(self, node: ast.expr, op: CompareOp, a: Value, b: Value) -> Expr:
        """`a op b` as a truth value."""
        numbers = [v.number for v in (a, b) if isinstance(v, Weak) and v.number is not None]
        if len(numbers) == 2 and any(isinstance(n, float) for n in numbers):
            return self.constant(node, compared(op, *numbers), BOOL)
        return self.make(node, Compare, op, *self.matched(node, a, b))

    def choice(
        self, node: ast.expr, kind: type[Select] | type[IfThenElseExpr], condition: Expr, a: Value, b: Value
    ) -> Value:
        """One of two values; sides of `T.Select` are not converted. Untyped where a side is and nothing decides."""
        if isinstance(a, Weak) and isinstance(b, Weak) and (a.number is None or b.number is None):
            return Weak(
                node,
                lambda dtype: self.make(node, kind, condition, a.build(dtype), b.build(dtype)),
                joint_default(a, b),
            )
        sides = self.same(node, "T.Select", a, b) if kind is Select else self.matched(node, a, b)
        return self.make(node, kind, condition, *sides)

    def logical(self, node: ast.expr, op: LogicalOp, terms: list[Expr]) -> Expr:
        """The terms joined, grouped to the left."""
        result = terms[0]
        for term in terms[1:]:
            if result.dtype.lanes != term.dtype.lanes:
                result, term = self.matched(node, result, term)
            result = self.make(node, Logical, op, result, term)
        return result

    def literal(self, node: ast.expr, value: Literal) -> Weak:
        """A constant that takes its type from what it meets."""
        return Weak(node, lambda dtype: self.constant(node, value, dtype), default_type(value), value, value)

    def constant(self, node: ast.expr, value: Literal, dtype: DType) -> Expr:
        """A constant of a type, broadcast to its lanes."""
        if isinstance(value, bool) and (dtype.is_integer or dtype.is_float):
            value = int(value)
        if dtype.kind is Kind.HANDLE or (dtype.is_bool and value not in (0, 1)):
            wanted = "a truth value" if dtype.is_bool else "a pointer" if dtype.kind is Kind.HANDLE else f"a {dtype}"
            raise self.text.fail(codes.WRONG_TYPE, f"{value} stands where {wanted} is expected", node)
        try:
            scalar = const(bool(value) if dtype.is_bool else value, dtype.element)
        except TypeError as problem:
            raise self.text.fail(codes.WRONG_TYPE, str(problem), node) from problem
        except (ValueError, OverflowError) as problem:
            raise self.text.fail(codes.NUMBER_RANGE, f"{value} does not fit {dtype.element}", node) from problem
        if isinstance(scalar, FloatImm) and math.isinf(scalar.value) and math.isfinite(value):
            raise self.text.fail(
                codes.NUMBER_RANGE, f"{value} is past the largest {dtype.element}", node, help="write T.infinity(...)"
            )
        element = (
            self.make(node, type(scalar), scalar.value, scalar.dtype)
            if isinstance(scalar, IntImm | FloatImm)
            else scalar
        )
        self.note_written(element, float(value))
        return element if dtype.lanes == 1 else self.make(node, Broadcast, element, dtype.lanes)


def extent_between(start: Expr, stop: Expr) -> Expr:
    """`stop - start`, or `extent` where `stop` is `start + extent`, so that a printed range reads back."""
    if isinstance(start, IntImm) and isinstance(stop, IntImm) and stop.value - start.value <= start.dtype.max_int:
        return IntImm(stop.value - start.value, start.dtype, span=stop.span)
    if isinstance(stop, Binary) and stop.op is BinaryOp.ADD and stop.lhs == start:
        return stop.rhs
    if is_zero(start):
        return stop
    return Binary(BinaryOp.SUB, *match_operands(stop, start), span=stop.span)


def stop_of(start: Expr, extent: Expr) -> Expr:
    """The stop to write for a range, such that `extent_between(start, stop)` is the extent again."""
    if isinstance(start, IntImm) and isinstance(extent, IntImm) and start.value + extent.value <= start.dtype.max_int:
        return IntImm(start.value + extent.value, start.dtype)
    written_as_sum = isinstance(extent, Binary) and extent.op is BinaryOp.ADD and extent.lhs == start
    if is_zero(start) and not written_as_sum:
        return extent
    return Binary(BinaryOp.ADD, *match_operands(start, extent))
