"""What an expression is while it is being read: an IR expression, or a constant that takes its type from what it meets.

In the script syntax `x + 1` has the type of `x`; the `1` has none of its own. So a text of constants only is kept as a recipe
until the other operand, the buffer stored to, or in the end the default decides.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from layoutproof.ir.dtype import BOOL, FLOAT32, FLOAT64, INT32, INT64, DType
from layoutproof.ir.expr import Expr

Literal = int | float | bool


@dataclass(frozen=True, slots=True)
class Weak:
    """A value without a type: `build` makes it one of a given type (lanes included), raising LayoutproofError where it cannot be.

    `default` is the type it has when nothing decides; None where there is none. `literal` is the number, where it is a single one.
    """

    node: ast.expr
    build: Callable[[DType], Expr]
    default: DType | None
    literal: Literal | None = None


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
