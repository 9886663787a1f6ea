"""Index arithmetic as polynomials, and as sums of steps of chosen loops: how a tile's cells lie in memory.

Everything here is about mathematical integers, as index arithmetic is: that each index fits its type was proved of the program.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import reduce

from layoutproof.ir.dtype import INT32, DType, Kind
from layoutproof.ir.expr import Binary, BinaryOp, Cast, Expr, IntImm, Var, binary, const, widen
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import free_variables

Monomial = tuple[Expr, ...]
Polynomial = Mapping[Monomial, int]
"""Coefficients, none of them zero, by products of terms in a canonical order; the empty product has the constant."""


def polynomial(expr: Expr) -> Polynomial:
    """The normal form of sums, differences and products; what is neither is a term as it stands."""
    if isinstance(expr, IntImm):
        return {(): expr.value} if expr.value != 0 else {}
    if isinstance(expr, Binary):
        match expr.op:
            case BinaryOp.ADD:
                return added(polynomial(expr.lhs), polynomial(expr.rhs))
            case BinaryOp.SUB:
                return added(polynomial(expr.lhs), polynomial(expr.rhs), -1)
            case BinaryOp.MUL:
                return multiplied(polynomial(expr.lhs), polynomial(expr.rhs))
            case _:
                return {(expr,): 1}
    if isinstance(expr, Cast) and expr.dtype.kind is Kind.INT and expr.value.dtype.kind is Kind.INT and _widens(expr):
        return polynomial(expr.value)
    return {(expr,): 1}


def _widens(cast: Cast) -> bool:
    return cast.dtype.lanes == 1 and cast.dtype.bits >= cast.value.dtype.bits


def added(a: Polynomial, b: Polynomial, factor: int = 1) -> Polynomial:
    """`a + factor * b`."""
    total = dict(a)
    for monomial, coefficient in b.items():
        value = total.get(monomial, 0) + factor * coefficient
        if value != 0:
            total[monomial] = value
        else:
            total.pop(monomial, None)
    return total


def multiplied(a: Polynomial, b: Polynomial) -> Polynomial:
    """`a * b`."""
    total: Polynomial = {}
    for first, x in a.items():
        for second, y in b.items():
            total = added(total, {tuple(sorted((*first, *second), key=expr_text)): x * y})
    return total


def number(value: Polynomial) -> int | None:
    """The constant that a polynomial is; None for any other."""
    return value.get((), 0) if set(value) <= {()} else None


def expression(value: Polynomial) -> Expr:
    """The polynomial as an expression: what is added first, then what is subtracted, so that no partial sum is below zero needlessly."""
    dtype = _type_of(value)
    result: Expr | None = None
    for monomial, coefficient in sorted(value.items(), key=lambda item: (item[1] < 0, item[0] == (), -abs(item[1]))):
        part = _product(monomial, abs(coefficient), dtype)
        if result is None:
            result = part if coefficient > 0 else binary(BinaryOp.SUB, const(0, dtype), part)
        else:
            result = binary(BinaryOp.ADD if coefficient > 0 else BinaryOp.SUB, result, part)
    return result if result is not None else const(0, dtype)


def _type_of(value: Polynomial) -> DType:
    return max((term.dtype for monomial in value for term in monomial), key=lambda dtype: dtype.bits, default=INT32)


def _product(monomial: Monomial, coefficient: int, dtype: DType) -> Expr:
    factors = [widen(term, dtype) for term in monomial]
    if coefficient != 1 or not factors:
        factors.append(const(coefficient, dtype))
    return reduce(lambda a, b: binary(BinaryOp.MUL, a, b), factors)


@dataclass(frozen=True, slots=True)
class Steps:
    """`base + sum(by_loop[v] * v)`; neither the base nor a step speaks of a loop."""

    base: Polynomial
    by_loop: Mapping[Var, Polynomial]

    def of(self, loop: Var) -> int | None:
        """The step of one loop where it is a number."""
        return number(self.by_loop.get(loop, {}))


def steps_of(index: Expr, loops: Collection[Var]) -> Steps | None:
    """An index as steps of loops; None where it is no such sum."""
    base: Polynomial = {}
    by_loop: dict[Var, Polynomial] = {}
    for monomial, coefficient in polynomial(index).items():
        inside = [term for term in monomial if isinstance(term, Var) and term in loops]
        rest = tuple(term for term in monomial if term not in inside)
        if len(inside) > 1 or any(v in loops for term in rest for v in free_variables(term)):
            return None
        if inside:
            by_loop[inside[0]] = added(by_loop.get(inside[0], {}), {rest: coefficient})
        else:
            base = added(base, {rest: coefficient})
    return Steps(base, by_loop)
