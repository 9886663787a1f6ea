"""Expressions to the normal form of `ring.py`: exact, or GiveUp is raised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from layoutproof.ir.dtype import INT32, DType
from layoutproof.ir.expr import FALSE, Binary, Cast, Expr, IfThenElseExpr, IntImm, Select, Var, const
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.operators import BinaryOp
from layoutproof.verify.algebra.enumeration import trap_condition
from layoutproof.verify.algebra.polynomials import GiveUp, Poly, add, constant, constant_of, multiply, plus, scale
from layoutproof.verify.algebra.ring import Ring


class Lifter:
    """Lifts expressions whose variables have the forms of `values`, by name. A form is computed once per expression."""

    def __init__(self, ring: Ring, values: Mapping[str, Poly]) -> None:
        self.ring = ring
        self.values = values
        self._done: dict[Expr, Poly] = {}

    def lift(self, expr: Expr) -> Poly:
        """The normal form. Raises GiveUp."""
        known = self._done.get(expr)
        if known is None:
            operation = _LIFTERS.get(type(expr))
            if operation is None:
                raise GiveUp(f"{type(expr).__name__} has no normal form")
            known = self._done[expr] = operation(self, expr)
        return known


def _variable(lifter: Lifter, expr: Var) -> Poly:
    value = lifter.values.get(expr.name)
    if value is None:
        raise GiveUp(f"{expr.name} is neither an index nor a symbol of the shape")
    return value


def _binary(lifter: Lifter, expr: Binary) -> Poly:
    operation = _BINARY.get(expr.op)
    if operation is None:
        raise GiveUp(f"`{expr.op}` has no normal form")
    return operation(lifter.ring, lifter.lift(expr.lhs), lifter.lift(expr.rhs))


def _truncdiv(ring: Ring, a: Poly, b: Poly) -> Poly:
    if not ring.is_nonnegative(plus(b, -1)):
        if not ring.is_nonnegative(plus(scale(b, -1), -1)):
            raise GiveUp("a truncated division by something whose sign is not known")
        return scale(_truncdiv(ring, a, scale(b, -1)), -1)
    if ring.is_nonnegative(a):
        return ring.floor(a, b)
    if ring.is_nonnegative(scale(a, -1)):
        return scale(ring.floor(scale(a, -1), b), -1)
    raise GiveUp("a truncated division of something whose sign is not known")


def _min(ring: Ring, a: Poly, b: Poly) -> Poly:
    if ring.is_nonnegative(add(b, a, -1)):
        return a
    if ring.is_nonnegative(add(a, b, -1)):
        return b
    raise GiveUp("a minimum that depends on the index")


def _mask(ring: Ring, a: Poly, mask: int) -> Poly:
    """`a & mask`, run of ones by run of ones."""
    if mask < 0:
        return add(a, _mask(ring, a, ~mask), -1)
    result: Poly = {}
    low = 0
    while mask >> low:
        length = 0
        while mask >> (low + length) & 1:
            length += 1
        if length:
            run = ring.remainder(ring.floor_by(a, 1 << low), constant(1 << length))
            result = add(result, run, 1 << low)
        low += length + 1
    return result


def _and(ring: Ring, a: Poly, b: Poly) -> Poly:
    for x, y in ((a, b), (b, a)):
        mask = constant_of(y)
        if mask is not None:
            return _mask(ring, x, mask)
    raise GiveUp("`&` of two variables")


def _or(ring: Ring, a: Poly, b: Poly) -> Poly:
    for x, y in ((a, b), (b, a)):
        mask = constant_of(y)
        if mask is not None:
            return add(plus(x, mask), _mask(ring, x, mask), -1)
        low, high = ring.range_of(x)
        factors = [c & -c for m, c in y.items()]
        if low is not None and high is not None and low >= 0 and high < min(factors):
            return add(x, y)
    raise GiveUp("`|` of two variables")


def _shift(ring: Ring, a: Poly, b: Poly, left: bool) -> Poly:
    amount = constant_of(b)
    if amount is None or not 0 <= amount <= 62:
        raise GiveUp("a shift whose amount is not a constant from 0 to 62")
    return scale(a, 1 << amount) if left else ring.floor_by(a, 1 << amount)


_BINARY: dict[BinaryOp, Callable[[Ring, Poly, Poly], Poly]] = {
    BinaryOp.ADD: lambda ring, a, b: add(a, b),
    BinaryOp.SUB: lambda ring, a, b: add(a, b, -1),
    BinaryOp.MUL: lambda ring, a, b: multiply(a, b),
    BinaryOp.FLOORDIV: lambda ring, a, b: ring.floor(a, b),
    BinaryOp.FLOORMOD: lambda ring, a, b: ring.remainder(a, b),
    BinaryOp.TRUNCDIV: _truncdiv,
    BinaryOp.TRUNCMOD: lambda ring, a, b: add(a, multiply(b, _truncdiv(ring, a, b)), -1),
    BinaryOp.MIN: _min,
    BinaryOp.MAX: lambda ring, a, b: scale(_min(ring, scale(a, -1), scale(b, -1)), -1),
    BinaryOp.BITAND: _and,
    BinaryOp.BITOR: _or,
    BinaryOp.BITXOR: lambda ring, a, b: ring.xor([a, b]),
    BinaryOp.SHL: lambda ring, a, b: _shift(ring, a, b, True),
    BinaryOp.SHR: lambda ring, a, b: _shift(ring, a, b, False),
}


def _choice(lifter: Lifter, expr: Select | IfThenElseExpr) -> Poly:
    then, otherwise = lifter.lift(expr.then), lifter.lift(expr.otherwise)
    if then == otherwise and trap_condition(expr.condition) == FALSE:
        return then
    raise GiveUp("a choice that depends on the index")


def _cast(lifter: Lifter, expr: Cast) -> Poly:
    if not expr.value.dtype.is_integer:
        raise GiveUp("a truth value used as a number")
    return lifter.lift(expr.value)


def _call(lifter: Lifter, expr: Call) -> Poly:
    value = lifter.lift(expr.arguments[0])
    if expr.function == "abs" and lifter.ring.is_nonnegative(value):
        return value
    if expr.function == "abs" and lifter.ring.is_nonnegative(scale(value, -1)):
        return scale(value, -1)
    raise GiveUp(f"{expr.function} of something whose sign is not known")


_LIFTERS: dict[type[Expr], Callable[[Lifter, Any], Poly]] = {
    IntImm: lambda lifter, e: constant(e.value),
    Var: _variable,
    Binary: _binary,
    Select: _choice,
    IfThenElseExpr: _choice,
    Cast: _cast,
    Call: _call,
}


class NumberTooWide(Exception):
    """A constant of an answer that does not fit its type."""


@lru_cache(maxsize=4096)
def number(value: int, dtype: DType = INT32) -> Expr:
    """A constant, made once. Raises NumberTooWide."""
    if not dtype.min_int <= value <= dtype.max_int:
        raise NumberTooWide(f"{value} does not fit {dtype}")
    return const(value, dtype)
