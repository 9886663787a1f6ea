"""Small things about scalar expressions that every engine of values needs, and one writing for expressions that differ
only in the order or the grouping of operations where that changes no value. Part of the trust base.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

from layoutproof.ir.dtype import DType, Kind
from layoutproof.ir.expr import Binary, Cast, Compare, Expr, FloatImm, IfThenElseExpr, IntImm, Select, Var
from layoutproof.ir.intrinsics import Call, Limit, LimitKind
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.ir.semantics import cast_value, max_finite
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import map_children, walk

Number = float | int

# What computes no float: it names one, or passes one on, a literal perhaps.
PASSED_ON = (Var, FloatImm, Limit, Select, IfThenElseExpr)
_TRAPPING = {BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD, BinaryOp.SHL, BinaryOp.SHR}
_SHIFTS = {BinaryOp.SHL, BinaryOp.SHR}
_SIGNED_ZERO_OPS = {BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.DIV, BinaryOp.MIN, BinaryOp.MAX}


def constant_value(expr: Expr) -> Number | None:
    """The value of a literal (truth values as 0 and 1), or None."""
    match expr:
        case FloatImm(value=value) | IntImm(value=value):
            return value
        case Limit(kind=kind, dtype=dtype) if dtype.is_integer:
            return dtype.max_int if kind is LimitKind.MAX else dtype.min_int
        case Limit(kind=kind, dtype=dtype):
            largest = math.inf if kind is LimitKind.INFINITY else max_finite(dtype)
            return -largest if kind is LimitKind.MIN else largest
        case _:
            return None


def converted_constant(expr: Expr) -> Number | None:
    """The value of a literal, or of a float literal that is converted to another float type; or None."""
    if isinstance(expr, Cast) and expr.dtype.is_float and expr.value.dtype.is_float:
        value = converted_constant(expr.value)
        return None if value is None else cast_value(value, expr.value.dtype.element, expr.dtype.element)
    return constant_value(expr)


def literal(value: Number, dtype: DType) -> Expr:
    """The literal of a value; a float must be a number of the type."""
    return FloatImm(float(value), dtype) if dtype.is_float else IntImm(int(value), dtype)


def is_identical(a: Number, b: Number) -> bool:
    """Value identity of two numbers of one type: +0.0 is not -0.0, a NaN is any NaN."""
    if isinstance(a, float) or isinstance(b, float):
        a, b = float(a), float(b)
        return (a != a and b != b) or (a == b and math.copysign(1.0, a) == math.copysign(1.0, b))
    return a == b


def can_trap(expr: Expr) -> bool:
    """Whether evaluating this very node, its operands apart, may have no result."""
    match expr:
        case Binary(op=op, rhs=rhs) if op in _TRAPPING:
            amount = constant_value(rhs)
            if amount is None:
                return True
            return (
                not 0 <= amount < expr.dtype.bits
                if op in _SHIFTS
                else amount == 0 or (amount == -1 and expr.dtype.kind is Kind.INT)
            )
        case Cast(dtype=dtype, value=value):
            return dtype.is_integer and value.dtype.is_float
        case _:
            return False


def trapping_parts(expr: Expr) -> Iterator[Expr]:
    """Every node below that can trap."""
    return (node for node in walk(expr) if isinstance(node, Expr) and can_trap(node))


def can_trap_below(expr: Expr) -> bool:
    """Whether evaluating it may have no result."""
    return next(trapping_parts(expr), None) is not None


def chooses_zero_sign(expr: Expr) -> bool:
    """Whether this node is an operation that may choose the sign of its zero result under `nsz`."""
    match expr:
        case Binary(op=op):
            return expr.dtype.is_float and op in _SIGNED_ZERO_OPS
        case Call(function=function):
            return expr.dtype.is_float and function != "abs"
        case _:
            return False


_FLOAT_COMMUTES = {BinaryOp.ADD, BinaryOp.MUL}
_INTEGER_REGROUPS = {
    BinaryOp.ADD, BinaryOp.MUL, BinaryOp.MIN, BinaryOp.MAX, BinaryOp.BITAND, BinaryOp.BITOR, BinaryOp.BITXOR,
}  # fmt: skip
_FAMILIES = ({BinaryOp.ADD, BinaryOp.SUB}, {BinaryOp.MUL, BinaryOp.DIV})
_CALL_COMMUTES = {"fmax", "fmin", "maximum", "minimum"}


@lru_cache(maxsize=4096)
def ordered(expr: Expr) -> Expr:
    """The same value and the same traps, with the operands of commutative operations in a fixed order."""

    def visit(node: Node) -> Node:
        return ordered(node) if isinstance(node, Expr) else node

    return _sorted(map_children(expr, visit))


def comparable(expr: Expr) -> Expr:
    """`ordered`, with lazy choices that cannot trap as plain ones, and signs outside: for comparing only."""
    return ordered(_rewritten(ordered(expr)))


def _sorted(expr: Expr) -> Expr:
    match expr:
        case Binary(op=op, lhs=a, rhs=b) if op in _FLOAT_COMMUTES and expr.dtype.is_float:
            x, y = sorted((a, b), key=key_of)
            return expr if x is a else Binary(op, x, y)
        case Binary(op=op) if op in _INTEGER_REGROUPS and not expr.dtype.is_float:
            return _chain(op, sorted(chain_of(expr, op), key=key_of))
        case Compare(op=op, lhs=a, rhs=b) if op in (CompareOp.GT, CompareOp.GE):
            return Compare(op.mirrored, b, a)
        case Compare(op=CompareOp.EQ | CompareOp.NE as op, lhs=a, rhs=b):
            return Compare(op, *sorted((a, b), key=key_of))
        case Call(function=function, arguments=arguments) if function in _CALL_COMMUTES:
            return Call(function, tuple(sorted(arguments, key=key_of)))
        case Call(function="fma", arguments=(a, b, c)):
            return Call("fma", (*sorted((a, b), key=key_of), c))
        case _:
            return expr


def chain_of(expr: Expr, op: BinaryOp) -> Iterator[Expr]:
    """The operands of a chain of one operator, left to right."""
    if isinstance(expr, Binary) and expr.op is op:
        yield from chain_of(expr.lhs, op)
        yield from chain_of(expr.rhs, op)
    else:
        yield expr


def _chain(op: BinaryOp, operands: list[Expr]) -> Expr:
    result = operands[0]
    for operand in operands[1:]:
        result = Binary(op, result, operand)
    return result


@lru_cache(maxsize=4096)
def key_of(expr: Expr) -> str:
    """A text that differs for different expressions, the same in every run."""
    return f"{expr_text(expr, Style.SCRIPT)}: {expr.dtype}"


@lru_cache(maxsize=4096)
def _rewritten(expr: Expr) -> Expr:
    def visit(node: Node) -> Node:
        return _rewritten(node) if isinstance(node, Expr) else node

    inner = map_children(expr, visit)
    match inner:
        case IfThenElseExpr(condition=c, then=a, otherwise=b) if not can_trap_below(a) and not can_trap_below(b):
            return Select(c, a, b)
        case Binary() if inner.dtype.is_float:
            return _signs_outside(inner)
        case _:
            return inner


def _signs_outside(expr: Binary) -> Expr:
    """A float operation with differences as sums, and signs outside products and quotients: exact."""
    a, b = expr.lhs, expr.rhs
    match expr.op:
        case BinaryOp.SUB:
            return Binary(BinaryOp.ADD, a, _negated(b))
        case BinaryOp.MUL if _is_minus_one(a) or _is_minus_one(b):
            return _negated(b if _is_minus_one(a) else a)
        case BinaryOp.MUL | BinaryOp.DIV as op:
            (x, minus), (y, other) = _sign_of(a), _sign_of(b)
            if not minus and not other:
                return expr
            result = Binary(op, x, y)
            return result if minus == other else _negated(result)
        case _:
            return expr


def _is_minus_one(expr: Expr) -> bool:
    return isinstance(expr, FloatImm) and expr.value == -1.0


def _sign_of(expr: Expr) -> tuple[Expr, bool]:
    """An expression without the sign in front of it, and whether there was one."""
    if isinstance(expr, Binary) and expr.op is BinaryOp.MUL:
        if _is_minus_one(expr.rhs):
            return expr.lhs, True
        if _is_minus_one(expr.lhs):
            return expr.rhs, True
    return expr, False


def _negated(expr: Expr) -> Expr:
    """The opposite: a literal, what stood behind a sign, or a product with -1.0."""
    if isinstance(expr, FloatImm):
        return FloatImm(-expr.value, expr.dtype)
    inner, minus = _sign_of(expr)
    return inner if minus else Binary(BinaryOp.MUL, expr, FloatImm(-1.0, expr.dtype))


@lru_cache(maxsize=4096)
def regrouped(expr: Expr) -> Expr:
    """One form for all groupings and orders of float sums and products, as `reassoc` allows."""

    def visit(node: Node) -> Node:
        return regrouped(node) if isinstance(node, Expr) else node

    inner = map_children(expr, visit)
    if isinstance(inner, Binary) and inner.op in _FLOAT_COMMUTES and inner.dtype.is_float:
        return _chain(inner.op, sorted(chain_of(inner, inner.op), key=key_of))
    return inner


def regroups(expr: Expr) -> bool:
    """Whether `reassoc` might apply: a float chain of three operands or more, with `-` and `/`."""
    return any(
        isinstance(side, Binary) and side.op in family
        for node in walk(expr)
        if isinstance(node, Binary) and node.dtype.is_float
        for family in _FAMILIES
        if node.op in family
        for side in (node.lhs, node.rhs)
    )
