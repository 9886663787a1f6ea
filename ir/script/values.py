"""What an expression is while it is being read, and the rule that brings two operands to one type: TVM's.

A number of a text is Python's until it meets something that has a type: `2 * 3` is 6 however wide. Then it is an `int32` (an `int64`
where it is too large), a `float32` or a `bool`, and the wider of the two types is the operator's; a type that holds floats is wider
than one that holds integers.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from layoutproof.ir.dtype import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, INT64, DType, Kind
from layoutproof.ir.evaluate import COMPARISONS
from layoutproof.ir.expr import CompareOp, Expr

Literal = int | float | bool


@dataclass(frozen=True, slots=True)
class Weak:
    """A value without a type: `build` makes it one of a given type (lanes included), raising LayoutproofError where it cannot be.

    `default` is the type it has when nothing decides; None where there is none. `literal` is the number, where it is a single one,
    `number` what Python makes of the arithmetic, where the text is arithmetic on numbers only.
    """

    node: ast.expr
    build: Callable[[DType], Expr]
    default: DType | None
    literal: Literal | None = None
    number: Literal | None = None


Value = Expr | Weak

_ORDER = (BOOL, INT32, INT64, FLOAT32, FLOAT64)


def default_type(literal: Literal) -> DType | None:
    """The type of a bare constant: the narrowest of int32 and int64 that holds it, float32, bool; None for an integer past int64."""
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

    A float is wider than any integer, an integer than a truth value; of two of a kind the one of more bits, and of a signed and an
    unsigned integer of one width the unsigned one.
    """
    if a.element == b.element:
        return a.element
    if {a.element, b.element} == {FLOAT16, BFLOAT16}:
        return None
    return max(a.element, b.element, key=lambda d: (d.is_float, d.is_integer, d.bits, d.kind is Kind.UINT))


def compared(op: CompareOp, a: Literal, b: Literal) -> bool:
    """What Python makes of `a op b`."""
    return bool(COMPARISONS[op](a, b))
