"""Expressions as text in Python's syntax, with no more parentheses than needed.

Style `script` is TVM's script syntax, in its current dialect or that of older releases, and reads back equal; style
`plain` is for people: `min(a, b)`, `c//4`, integers without their width.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.dtype import INT32, UINT64, DType, Kind
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
from layoutproof.ir.intrinsics import (
    Assume,
    Call,
    Limit,
    OpaqueCall,
    PointerCast,
    Reducer,
    Reinterpret,
    StringImm,
    Undef,
    default_dtype,
    takes_dtype_first,
)
from layoutproof.ir.operators import BinaryOp, LogicalOp


@dataclass(frozen=True, slots=True)
class Dialect:
    """The names that differ between the dialects."""

    name: str
    header: tuple[str, ...]
    prim_func: str
    block: str
    block_attr: str
    block_alloc: str
    allocate: str
    serial: str
    ramp: str
    broadcast: str
    let_annotation: str
    old_buffers: bool


CURRENT = Dialect(
    name="current",
    header=("# from tvm.script import ir as I", "# from tvm.script import tirx as T"),
    prim_func="@T.prim_func(s_tir=True)",
    block="T.sblock",
    block_attr="T.sblock_attr",
    block_alloc="T.sblock_alloc_buffer",
    allocate="T.alloc_buffer",
    serial="range",
    ramp="T.Ramp",
    broadcast="T.Broadcast",
    let_annotation="T.let[{}]",
    old_buffers=False,
)

OLD = Dialect(
    name="old",
    header=("# from tvm.script import ir as I", "# from tvm.script import tir as T"),
    prim_func="@T.prim_func",
    block="T.block",
    block_attr="T.block_attr",
    block_alloc="T.alloc_buffer",
    allocate="T.decl_buffer",
    serial="T.serial",
    ramp="T.ramp",
    broadcast="T.broadcast",
    let_annotation="{}",
    old_buffers=True,
)

DIALECTS = {dialect.name: dialect for dialect in (CURRENT, OLD)}


class Style(StrEnum):
    """Whom the text is for."""

    SCRIPT = "script"
    PLAIN = "plain"


# Python's precedences, from loose to tight.
_CHOICE, _OR, _AND, _NOT, _COMPARE, _BITOR, _BITXOR, _BITAND, _SHIFT, _SUM, _PRODUCT, _UNARY, _ATOM = range(13)

_INFIX: Mapping[BinaryOp, int] = {
    BinaryOp.ADD: _SUM,
    BinaryOp.SUB: _SUM,
    BinaryOp.MUL: _PRODUCT,
    BinaryOp.DIV: _PRODUCT,
    BinaryOp.FLOORDIV: _PRODUCT,
    BinaryOp.FLOORMOD: _PRODUCT,
    BinaryOp.BITAND: _BITAND,
    BinaryOp.BITOR: _BITOR,
    BinaryOp.BITXOR: _BITXOR,
    BinaryOp.SHL: _SHIFT,
    BinaryOp.SHR: _SHIFT,
}

_PYTHON: Mapping[BinaryOp, Callable[[Any, Any], int | float]] = {
    BinaryOp.ADD: operator.add,
    BinaryOp.SUB: operator.sub,
    BinaryOp.MUL: operator.mul,
    BinaryOp.DIV: operator.truediv,
    BinaryOp.FLOORDIV: operator.floordiv,
    BinaryOp.FLOORMOD: operator.mod,
    BinaryOp.BITAND: operator.and_,
    BinaryOp.BITOR: operator.or_,
    BinaryOp.BITXOR: operator.xor,
    BinaryOp.SHL: operator.lshift,
    BinaryOp.SHR: operator.rshift,
    BinaryOp.MIN: min,
    BinaryOp.MAX: max,
}
_LARGEST_SHIFT = 64

Piece = tuple[str, int]


def expr_text(
    expr: Expr,
    style: Style | str = Style.SCRIPT,
    *,
    dialect: Dialect = CURRENT,
    handles: Mapping[str, str] | None = None,
) -> str:
    """The text of an expression.

    `handles` says how a data variable is written, by its name (`{"A_data": "A.data"}`); others are written by their
    names.
    """
    return _Writer(Style(style), dialect, handles if handles is not None else {}).at(expr, _CHOICE)


def literal_float(value: float) -> str:
    """A float as the shortest decimal that reads back equal; the special ones quoted, as the script syntax has them."""
    return f'"{value}"' if value != value or value in (float("inf"), float("-inf")) else repr(value)


def string_text(value: str) -> str:
    """A string literal in double quotes that Python reads back equal."""
    if '"' in value:
        return repr(value)
    quoted = repr("'" + value)  # Python quotes with " where a ' stands inside
    return f'"{quoted[2:]}'


def python_number(op: BinaryOp, a: int | float, b: int | float) -> int | float:
    """Python's value of the text `a op b`. Raises ArithmeticError, TypeError or ValueError where there is none."""
    if op is BinaryOp.SHL and b > _LARGEST_SHIFT:
        raise OverflowError("the number does not fit 64 bits")
    return _PYTHON[op](a, b)


def _bare_number(e: Expr) -> int | None:
    """The number that Python makes of the text of `e`, if it consists of plain numbers that 32 bits hold."""
    if isinstance(e, IntImm):
        return e.value if e.dtype == INT32 else None
    if not isinstance(e, Binary) or e.op not in _INFIX or e.dtype != INT32:
        return None
    a, b = _bare_number(e.lhs), _bare_number(e.rhs)
    if a is None or b is None:
        return None
    try:
        number = python_number(e.op, a, b)
    except (ArithmeticError, TypeError, ValueError):
        return None
    return number if isinstance(number, int) and INT32.min_int <= number <= INT32.max_int else None


def _is_wide_complement(e: Binary) -> bool:
    """Whether `e` is what `~` of a uint64 is read as: TVM's script has no literal for those ones."""
    return e.op is BinaryOp.BITXOR and isinstance(e.rhs, IntImm) and e.rhs.value == UINT64.max_int


class _Writer:
    def __init__(self, style: Style, dialect: Dialect, handles: Mapping[str, str]) -> None:
        self.plain = style is Style.PLAIN
        self.prefix = "" if self.plain else "T."
        self.dialect = dialect
        self.handles = handles

    def at(self, expr: Expr, level: int) -> str:
        """The text, in parentheses where it binds looser than `level`."""
        text, precedence = _WRITERS[type(expr)](self, expr)
        return text if precedence >= level else f"({text})"

    def call(self, name: str, *arguments: Expr | str) -> Piece:
        parts = (a if isinstance(a, str) else self.at(a, _CHOICE) for a in arguments)
        return f"{name}({', '.join(parts)})", _ATOM

    def typed(self, name: str, dtype: DType, *arguments: Expr) -> Piece:
        return self.call(f"{self.prefix}{name}", f'"{dtype}"', *arguments)

    def int_imm(self, e: IntImm) -> Piece:
        if e.dtype.is_bool:
            return (str(bool(e.value)) if self.plain else f"T.bool({bool(e.value)})"), _ATOM
        if self.plain or e.dtype == INT32:
            return str(e.value), (_UNARY if e.value < 0 else _ATOM)
        return f"T.{e.dtype}({e.value})", _ATOM

    def float_imm(self, e: FloatImm) -> Piece:
        text = literal_float(e.value)
        if not self.plain:
            return f"T.{e.dtype}({text})", _ATOM
        return text.strip('"'), (_UNARY if text.startswith("-") else _ATOM)

    def var(self, e: Var) -> Piece:
        return (self.handles.get(e.name, e.name) if e.dtype.kind is Kind.HANDLE else e.name), _ATOM

    def binary(self, e: Binary) -> Piece:
        precedence = _INFIX.get(e.op)
        if precedence is None:
            return self.call(f"{self.prefix}{e.op.value}", e.lhs, e.rhs)
        if (
            self.plain
            and e.op is BinaryOp.MUL
            and isinstance(e.rhs, IntImm)
            and e.rhs.value == -1
            and not isinstance(e.lhs, IntImm)
        ):
            return f"-{self.at(e.lhs, _UNARY)}", _UNARY
        if not self.plain and _is_wide_complement(e):
            return f"~{self.at(e.lhs, _UNARY)}", _UNARY
        tight = self.plain and precedence == _PRODUCT and e.op is not BinaryOp.DIV
        symbol = e.op.value if tight else f" {e.op.value} "
        # Python computes arithmetic on plain numbers, however large; where that is not what 32 bits make of it, the
        # first has a type.
        plain = self.plain or None in (_bare_number(e.lhs), _bare_number(e.rhs)) or _bare_number(e) is not None
        left = self.at(e.lhs, precedence) if plain else self.typed_at(e.lhs, precedence)
        return f"{left}{symbol}{self.at(e.rhs, precedence + 1)}", precedence

    def typed_at(self, e: Expr, level: int) -> str:
        """The text of arithmetic on plain numbers, the first of them with its type."""
        if not isinstance(e, Binary):
            return f"T.{e.dtype}({self.at(e, _CHOICE)})"
        precedence = _INFIX[e.op]
        text = f"{self.typed_at(e.lhs, precedence)} {e.op.value} {self.at(e.rhs, precedence + 1)}"
        return text if precedence >= level else f"({text})"

    def compare(self, e: Compare) -> Piece:
        # Comparisons chain in Python, so neither side may be one without parentheses.
        return f"{self.at(e.lhs, _COMPARE + 1)} {e.op.value} {self.at(e.rhs, _COMPARE + 1)}", _COMPARE

    def logical(self, e: Logical) -> Piece:
        precedence = _AND if e.op is LogicalOp.AND else _OR
        return f"{self.at(e.lhs, precedence)} {e.op.value} {self.at(e.rhs, precedence + 1)}", precedence

    def negation(self, e: Not) -> Piece:
        return f"not {self.at(e.operand, _NOT)}", _NOT

    def select(self, e: Select) -> Piece:
        return self.call("select" if self.plain else "T.Select", e.condition, e.then, e.otherwise)

    def if_then_else(self, e: IfThenElseExpr) -> Piece:
        return self.call(f"{self.prefix}if_then_else", e.condition, e.then, e.otherwise)

    def cast(self, e: Cast) -> Piece:
        if self.plain:
            return self.call(str(e.dtype), e.value)
        return self.typed("Cast", e.dtype, e.value)

    def reinterpret(self, e: Reinterpret) -> Piece:
        return self.typed("reinterpret", e.dtype, e.value)

    def ramp(self, e: Ramp) -> Piece:
        return self.call("ramp" if self.plain else self.dialect.ramp, e.base, e.stride, str(e.lanes))

    def broadcast(self, e: Broadcast) -> Piece:
        return self.call("broadcast" if self.plain else self.dialect.broadcast, e.value, str(e.lanes))

    def load(self, e: BufferLoad) -> Piece:
        return f"{e.buffer.name}[{', '.join(self.at(i, _CHOICE) for i in e.indices) or '()'}]", _ATOM

    def string(self, e: StringImm) -> Piece:
        return string_text(e.value), _ATOM

    def pointer_cast(self, e: PointerCast) -> Piece:
        return self.typed("pointer_cast", e.pointee, e.pointer)

    def math(self, e: Call) -> Piece:
        return self.call(f"{self.prefix}{e.function}", *e.arguments)

    def opaque(self, e: OpaqueCall) -> Piece:
        name = f"{self.prefix}{e.function}"
        if takes_dtype_first(e.function):
            return self.call(name, f'"{e.dtype}"', *e.arguments)
        note = () if e.dtype == default_dtype(e.function) else (f'dtype="{e.dtype}"',)
        return self.call(name, *e.arguments, *note)

    def reducer(self, e: Reducer) -> Piece:
        names = ", ".join(v.name for v in (*e.left, *e.right))
        joined = ", ".join(self.at(result, _CHOICE) for result in e.results)
        values = f"({joined})" if len(e.results) > 1 else joined
        identities = ", ".join(self.at(identity, _CHOICE) for identity in e.identities)
        return f"{self.prefix}comm_reducer(lambda {names}: {values}, [{identities}])", _ATOM

    def undefined(self, e: Undef) -> Piece:
        return ("undef", _ATOM) if self.plain else (f'T.undef(dtype="{e.dtype}")', _ATOM)

    def limit(self, e: Limit) -> Piece:
        return self.typed(e.kind.value, e.dtype)

    def assume(self, e: Assume) -> Piece:
        return self.call(f"{self.prefix}assume", e.condition)


_WRITERS: Mapping[type[Expr], Callable[[_Writer, Any], Piece]] = {
    IntImm: _Writer.int_imm,
    FloatImm: _Writer.float_imm,
    Var: _Writer.var,
    Binary: _Writer.binary,
    Compare: _Writer.compare,
    Logical: _Writer.logical,
    Not: _Writer.negation,
    Select: _Writer.select,
    IfThenElseExpr: _Writer.if_then_else,
    Cast: _Writer.cast,
    Reinterpret: _Writer.reinterpret,
    Ramp: _Writer.ramp,
    Broadcast: _Writer.broadcast,
    BufferLoad: _Writer.load,
    StringImm: _Writer.string,
    PointerCast: _Writer.pointer_cast,
    Call: _Writer.math,
    OpaqueCall: _Writer.opaque,
    Reducer: _Writer.reducer,
    Undef: _Writer.undefined,
    Limit: _Writer.limit,
    Assume: _Writer.assume,
}

EXPRESSION_TYPES = frozenset(_WRITERS)
