"""Expressions: small, typed, frozen. Built as written; nothing is folded or simplified here.

`==` compares structure and gives a bool; the comparison *expression* is `equal(a, b)`. `<`, `+`, `//` and the like
build nodes.

Source: TVM's RFCs `vectorized-tir-buffers` (lanes), `buffer-physical-layout` (index expressions).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from layoutproof.ir.dtype import BOOL, INT32, INT64, DType, Kind
from layoutproof.ir.node import FloatToInteger, Node
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.semantics import round_float


@dataclass(frozen=True, slots=True, eq=False)
class Expr(Node):
    """A value. Every subclass has a `dtype`."""

    if TYPE_CHECKING:
        # At run time each subclass has it, as a field or a property: a property here would become the field's default.
        @property
        def dtype(self) -> DType:
            """The data type of the value, lanes included."""

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value; use logical_and, logical_or, logical_not, equal or select")

    def __add__(self, other: ExprLike) -> Expr:
        return binary(BinaryOp.ADD, self, other)

    def __radd__(self, other: ExprLike) -> Expr:
        return binary(BinaryOp.ADD, other, self)

    def __sub__(self, other: ExprLike) -> Expr:
        return binary(BinaryOp.SUB, self, other)

    def __rsub__(self, other: ExprLike) -> Expr:
        return binary(BinaryOp.SUB, other, self)

    def __mul__(self, other: ExprLike) -> Expr:
        return binary(BinaryOp.MUL, self, other)

    def __rmul__(self, other: ExprLike) -> Expr:
        return binary(BinaryOp.MUL, other, self)

    def __truediv__(self, other: ExprLike) -> Expr:
        return binary(BinaryOp.DIV, self, other)

    def __rtruediv__(self, other: ExprLike) -> Expr:
        return binary(BinaryOp.DIV, other, self)

    def __floordiv__(self, other: ExprLike) -> Expr:
        return binary(BinaryOp.FLOORDIV, self, other)

    def __rfloordiv__(self, other: ExprLike) -> Expr:
        return binary(BinaryOp.FLOORDIV, other, self)

    def __mod__(self, other: ExprLike) -> Expr:
        return binary(BinaryOp.FLOORMOD, self, other)

    def __rmod__(self, other: ExprLike) -> Expr:
        return binary(BinaryOp.FLOORMOD, other, self)

    def __and__(self, other: ExprLike) -> Expr:
        return binary(BinaryOp.BITAND, self, other)

    def __rand__(self, other: ExprLike) -> Expr:
        return binary(BinaryOp.BITAND, other, self)

    def __or__(self, other: ExprLike) -> Expr:
        return binary(BinaryOp.BITOR, self, other)

    def __ror__(self, other: ExprLike) -> Expr:
        return binary(BinaryOp.BITOR, other, self)

    def __xor__(self, other: ExprLike) -> Expr:
        return binary(BinaryOp.BITXOR, self, other)

    def __rxor__(self, other: ExprLike) -> Expr:
        return binary(BinaryOp.BITXOR, other, self)

    def __lshift__(self, other: ExprLike) -> Expr:
        return binary(BinaryOp.SHL, self, other)

    def __rlshift__(self, other: ExprLike) -> Expr:
        return binary(BinaryOp.SHL, other, self)

    def __rshift__(self, other: ExprLike) -> Expr:
        return binary(BinaryOp.SHR, self, other)

    def __rrshift__(self, other: ExprLike) -> Expr:
        return binary(BinaryOp.SHR, other, self)

    def __neg__(self) -> Expr:
        return binary(BinaryOp.MUL, self, -1)

    def __lt__(self, other: ExprLike) -> Expr:
        return compare(CompareOp.LT, self, other)

    def __le__(self, other: ExprLike) -> Expr:
        return compare(CompareOp.LE, self, other)

    def __gt__(self, other: ExprLike) -> Expr:
        return compare(CompareOp.GT, self, other)

    def __ge__(self, other: ExprLike) -> Expr:
        return compare(CompareOp.GE, self, other)


ExprLike = Expr | int | float


_INTEGER_ONLY = {BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD, BinaryOp.SHL, BinaryOp.SHR}
_BITWISE = {BinaryOp.BITAND, BinaryOp.BITOR, BinaryOp.BITXOR}
_INTEGER_KINDS, _FLOAT_KINDS = (Kind.INT, Kind.UINT), (Kind.FLOAT, Kind.BFLOAT)
_NUMBERS = ((*_INTEGER_KINDS, *_FLOAT_KINDS), "numbers, not {}")
# The kinds of operands that an operator takes, and what is said of others; operators that are not here take numbers.
_OPERANDS: dict[BinaryOp, tuple[tuple[Kind, ...], str]] = {
    **dict.fromkeys(_INTEGER_ONLY, (_INTEGER_KINDS, "integers, not {}")),
    **dict.fromkeys(_BITWISE, ((*_INTEGER_KINDS, Kind.BOOL), "integers or truth values, not {}")),
    BinaryOp.DIV: (_FLOAT_KINDS, "floats, not {}; integers are divided by `//` or truncdiv"),
}


def require(condition: bool, message: str) -> None:
    """Raise TypeError with `message` unless `condition` holds; for nodes that check themselves."""
    if not condition:
        raise TypeError(message)


@dataclass(frozen=True, slots=True, eq=False)
class IntImm(Expr):
    """An integer or truth-value constant that fits its type."""

    value: int
    dtype: DType = INT32

    def _check(self) -> None:
        # Here and in other nodes that are made very often a message is put together only if it is needed.
        if self.dtype.lanes != 1 or not (self.dtype.is_integer or self.dtype.is_bool):
            raise TypeError(f"an integer constant of type {self.dtype}")
        if not self.dtype.min_int <= self.value <= self.dtype.max_int:
            raise ValueError(f"{self.value} does not fit {self.dtype}")


@dataclass(frozen=True, slots=True, eq=False)
class FloatImm(Expr):
    """A float constant. `value` is a number of `dtype` (use `const` to round); compared bit for bit, all NaNs alike."""

    value: float
    dtype: DType

    def _check(self) -> None:
        if self.dtype.lanes != 1 or not self.dtype.is_float:
            raise TypeError(f"a float constant of type {self.dtype}")
        if self.value == self.value and round_float(self.value, self.dtype) != self.value:
            raise ValueError(f"{self.value!r} is not a number of type {self.dtype}")

    def _key(self) -> Any:
        return (struct.pack(">d", self.value) if self.value == self.value else b"nan", self.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class Var(Expr):
    """A variable, known by its name and type. A name is bound once on any path from the root of a function."""

    name: str
    dtype: DType = INT32


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Expr):
    """`lhs op rhs`, both of one type."""

    op: BinaryOp
    lhs: Expr
    rhs: Expr

    def _check(self) -> None:
        left, right = self.lhs.dtype, self.rhs.dtype
        if left is not right and left != right:
            raise TypeError(f"the operands of `{self.op}` have types {left} and {right}")
        allowed, what = _OPERANDS.get(self.op, _NUMBERS)
        if left.kind not in allowed:
            raise TypeError(f"`{self.op}` takes {what.format(left)}")

    @property
    def dtype(self) -> DType:
        """The operands' type."""
        return self.lhs.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Compare(Expr):
    """`lhs op rhs`, a truth value per lane."""

    op: CompareOp
    lhs: Expr
    rhs: Expr

    def _check(self) -> None:
        if self.lhs.dtype != self.rhs.dtype:
            raise TypeError(f"the operands of `{self.op}` have types {self.lhs.dtype} and {self.rhs.dtype}")

    @property
    def dtype(self) -> DType:
        """bool, with the operands' lanes."""
        return BOOL.with_lanes(self.lhs.dtype.lanes)


@dataclass(frozen=True, slots=True, eq=False)
class Logical(Expr):
    """`lhs and rhs`, `lhs or rhs`."""

    op: LogicalOp
    lhs: Expr
    rhs: Expr

    def _check(self) -> None:
        left, right = self.lhs.dtype, self.rhs.dtype
        if not left.is_bool or left != right:
            raise TypeError(f"`{self.op}` takes truth values, not {left} and {right}")

    @property
    def dtype(self) -> DType:
        """bool, with the operands' lanes."""
        return self.lhs.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Not(Expr):
    """`not operand`."""

    operand: Expr

    def _check(self) -> None:
        require(self.operand.dtype.is_bool, f"`not` takes a truth value, not {self.operand.dtype}")

    @property
    def dtype(self) -> DType:
        """bool, with the operand's lanes."""
        return self.operand.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Select(Expr):
    """One of two values; both are evaluated, faults included."""

    condition: Expr
    then: Expr
    otherwise: Expr

    def _check(self) -> None:
        _check_choice("select", self.condition, self.then, self.otherwise)

    @property
    def dtype(self) -> DType:
        """The type of both sides."""
        return self.then.dtype


@dataclass(frozen=True, slots=True, eq=False)
class IfThenElseExpr(Expr):
    """`if_then_else`: only the side taken is evaluated."""

    condition: Expr
    then: Expr
    otherwise: Expr

    def _check(self) -> None:
        _check_choice("if_then_else", self.condition, self.then, self.otherwise)
        require(self.condition.dtype.lanes == 1, "if_then_else takes one condition, not one per lane")

    @property
    def dtype(self) -> DType:
        """The type of both sides."""
        return self.then.dtype


def _check_choice(name: str, condition: Expr, then: Expr, otherwise: Expr) -> None:
    if not condition.dtype.is_bool:
        raise TypeError(f"the condition of {name} is a {condition.dtype}")
    if then.dtype != otherwise.dtype:
        raise TypeError(f"the sides of {name} have types {then.dtype} and {otherwise.dtype}")
    if condition.dtype.lanes not in (1, then.dtype.lanes):
        raise TypeError(f"{name} chooses {then.dtype} by {condition.dtype}")


@dataclass(frozen=True, slots=True, eq=False)
class Cast(Expr):
    """A value converted to another type, lane by lane (`semantics.cast_value`)."""

    dtype: DType
    value: Expr

    def _check(self) -> None:
        if self.dtype.lanes != self.value.dtype.lanes:
            raise TypeError(f"a cast from {self.value.dtype} to {self.dtype} changes the lanes")
        require(Kind.HANDLE not in (self.dtype.kind, self.value.dtype.kind), "a pointer is cast by PointerCast")

    def _marks(self) -> tuple[type, ...]:
        return (FloatToInteger,) * (self.dtype.is_integer and self.value.dtype.is_float and self.dtype.lanes == 1)


@dataclass(frozen=True, slots=True, eq=False)
class Ramp(Expr):
    """`base, base + stride, ...`, `lanes` values."""

    base: Expr
    stride: Expr
    lanes: int

    def _check(self) -> None:
        require(self.lanes > 1 and self.base.dtype.lanes == 1, f"a ramp of {self.lanes} lanes from a {self.base.dtype}")
        integers = self.base.dtype.is_integer and self.base.dtype == self.stride.dtype
        require(integers, f"a ramp of {self.base.dtype} by {self.stride.dtype}")

    @property
    def dtype(self) -> DType:
        """The base's type with `lanes` lanes."""
        return self.base.dtype.with_lanes(self.lanes)


@dataclass(frozen=True, slots=True, eq=False)
class Broadcast(Expr):
    """One value in every lane."""

    value: Expr
    lanes: int

    def _check(self) -> None:
        fits = self.lanes > 1 and self.value.dtype.lanes == 1
        require(fits, f"a broadcast of a {self.value.dtype} to {self.lanes} lanes")

    @property
    def dtype(self) -> DType:
        """The value's type with `lanes` lanes."""
        return self.value.dtype.with_lanes(self.lanes)


TRUE = IntImm(1, BOOL)
FALSE = IntImm(0, BOOL)


def const(value: int | float | bool, dtype: DType | None = None) -> Expr:
    """A constant of `dtype` (int32, or int64 where that is too small, when not given), rounded for floats, broadcast
    for lanes.

    Raises TypeError for a float where an integer is wanted, ValueError for an integer that does not fit.
    """
    if dtype is None:
        require(isinstance(value, int), f"{value!r} needs a data type")
        dtype = BOOL if isinstance(value, bool) else INT32 if INT32.min_int <= value <= INT32.max_int else INT64
    if dtype.lanes > 1:
        return Broadcast(const(value, dtype.element), dtype.lanes)
    if dtype.is_float:
        return FloatImm(round_float(float(value), dtype), dtype)
    require(isinstance(value, int), f"{value!r} is not a constant of {dtype}")
    return IntImm(int(value), dtype)


def match_operands(a: ExprLike, b: ExprLike) -> tuple[Expr, Expr]:
    """Both as expressions of one type: numbers take the other's type, narrow integers widen, scalars are broadcast.

    Raises TypeError or ValueError where a number is none of the other's type; other differences are left to the node
    built from them.
    """
    if not isinstance(a, Expr):
        require(isinstance(b, Expr), "neither operand is an expression")
        assert isinstance(b, Expr)
        require(
            not isinstance(a, bool),
            "a Python truth value in an expression; `==` between expressions gives one: use equal(a, b)",
        )
        return const(a, b.dtype), b
    if not isinstance(b, Expr):
        require(
            not isinstance(b, bool),
            "a Python truth value in an expression; `==` between expressions gives one: use equal(a, b)",
        )
        return a, const(b, a.dtype)
    if a.dtype.lanes == 1 < b.dtype.lanes:
        a = Broadcast(a, b.dtype.lanes)
    elif b.dtype.lanes == 1 < a.dtype.lanes:
        b = Broadcast(b, a.dtype.lanes)
    if a.dtype != b.dtype and a.dtype.kind == b.dtype.kind and a.dtype.is_integer:
        wide = a.dtype if a.dtype.bits > b.dtype.bits else b.dtype
        a, b = widen(a, wide), widen(b, wide)
    return a, b


def widen(value: Expr, dtype: DType) -> Expr:
    """`value` as `dtype`: the same constant, the same expression, or a cast."""
    if value.dtype == dtype:
        return value
    return (
        IntImm(value.value, dtype, span=value.span)
        if isinstance(value, IntImm) and dtype.lanes == 1
        else Cast(dtype, value)
    )


def binary(op: BinaryOp, a: ExprLike, b: ExprLike) -> Expr:
    """`a op b` with the operands' types matched. Raises TypeError where they cannot be."""
    return Binary(op, *match_operands(a, b))


def compare(op: CompareOp, a: ExprLike, b: ExprLike) -> Expr:
    """`a op b` as a truth value. Raises TypeError where the operands cannot be matched."""
    return Compare(op, *match_operands(a, b))


def is_zero(expr: Expr) -> bool:
    """Whether an expression is the constant 0."""
    return isinstance(expr, IntImm) and expr.value == 0


def equal(a: ExprLike, b: ExprLike) -> Expr:
    """The expression `a == b`."""
    return compare(CompareOp.EQ, a, b)


def logical_and(*terms: Expr) -> Expr:
    """The conjunction, grouped to the left; true for none."""
    return _join(LogicalOp.AND, terms, TRUE)


def logical_or(*terms: Expr) -> Expr:
    """The disjunction, grouped to the left; false for none."""
    return _join(LogicalOp.OR, terms, FALSE)


def negated(condition: Expr) -> Expr:
    """The negation; of one the operand."""
    return condition.operand if isinstance(condition, Not) else Not(condition)


def _join(op: LogicalOp, terms: tuple[Expr, ...], empty: Expr) -> Expr:
    if not terms:
        return empty
    result = terms[0]
    for term in terms[1:]:
        result = Logical(op, result, term)
    return result
