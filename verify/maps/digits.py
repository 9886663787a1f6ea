"""An output that is a digit of one input, moved by a number: `(x + c) // weight % modulus`, read as it is written."""

from __future__ import annotations

from typing import NamedTuple

from layoutproof.ir.expr import Binary, Expr, IntImm, Var
from layoutproof.ir.operators import BinaryOp


class Digit(NamedTuple):
    """`(name + offset) // weight % modulus`; a modulus of 0 for none."""

    name: str
    offset: int
    weight: int
    modulus: int


def read_digit(expr: Expr) -> Digit | None:
    """The digit that an expression is written as; None for other forms."""
    weight, modulus = 1, 0
    if isinstance(expr, Binary) and expr.op is BinaryOp.FLOORMOD:
        expr, modulus = _divided(expr)
        if modulus < 1:
            return None
    if isinstance(expr, Binary) and expr.op is BinaryOp.FLOORDIV:
        expr, weight = _divided(expr)
        if weight < 1:
            return None
    if isinstance(expr, Var):
        return Digit(expr.name, 0, weight, modulus)
    if not (isinstance(expr, Binary) and isinstance(expr.lhs, Var) and isinstance(expr.rhs, IntImm)):
        return None
    if expr.op is BinaryOp.ADD:
        return Digit(expr.lhs.name, expr.rhs.value, weight, modulus)
    return Digit(expr.lhs.name, -expr.rhs.value, weight, modulus) if expr.op is BinaryOp.SUB else None


def _divided(expr: Binary) -> tuple[Expr, int]:
    """The dividend, and the divisor if it is a number; else 0."""
    return expr.lhs, expr.rhs.value if isinstance(expr.rhs, IntImm) else 0
