"""Normal forms of index arithmetic: affine sums of terms in one canonical order, polynomials, strides of loops;
and constants folded by `ir.semantics` in the operation's own type.

The checker's polynomials are separate on purpose: a mistake in what proposes cannot hide in what proves. Everything
here is over mathematical integers; a caller uses it only if every sub-expression is known to fit its type.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

from layoutproof.ir import semantics
from layoutproof.ir.dtype import INT32, DType, Kind
from layoutproof.ir.expr import Binary, Cast, Compare, Expr, FloatImm, IntImm, Var, binary, const, widen
from layoutproof.ir.operators import COMPARISONS, BinaryOp
from layoutproof.ir.semantics import Trap
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import free_variables


@dataclass(frozen=True, slots=True)
class Affine:
    """`constant + sum(coefficient * term)`: terms are distinct and not constants, coefficients are not zero."""

    terms: Mapping[Expr, int]
    constant: int = 0

    def __add__(self, other: Affine) -> Affine:
        terms = dict(self.terms)
        for term, coefficient in other.terms.items():
            total = terms.get(term, 0) + coefficient
            if total != 0:
                terms[term] = total
            else:
                terms.pop(term, None)
        return Affine(terms, self.constant + other.constant)

    def __sub__(self, other: Affine) -> Affine:
        return self + other.scaled(-1)

    def scaled(self, factor: int) -> Affine:
        """Every coefficient and the constant times `factor`."""
        if factor == 0:
            return Affine({})
        return Affine({term: c * factor for term, c in self.terms.items()}, self.constant * factor)

    def split(self, divisor: int) -> tuple[Affine, Affine]:
        """`(q, r)` with `self == divisor * q + r` and 0 <= r.constant < divisor."""
        whole = {t: c // divisor for t, c in self.terms.items() if c % divisor == 0}
        rest = {t: c for t, c in self.terms.items() if c % divisor != 0}
        return Affine(whole, self.constant // divisor), Affine(rest, self.constant % divisor)

    @property
    def is_constant(self) -> bool:
        """Whether there is no term."""
        return not self.terms


def affine_of(expr: Expr) -> Affine:
    """The normal form of index arithmetic; anything but a sum or a multiple by a constant is a term."""
    if isinstance(expr, IntImm):
        return Affine({}, expr.value)
    if isinstance(expr, Binary):
        if expr.op is BinaryOp.ADD:
            return affine_of(expr.lhs) + affine_of(expr.rhs)
        if expr.op is BinaryOp.SUB:
            return affine_of(expr.lhs) - affine_of(expr.rhs)
        if expr.op is BinaryOp.MUL:
            left, right = affine_of(expr.lhs), affine_of(expr.rhs)
            if right.is_constant:
                return left.scaled(right.constant)
            if left.is_constant:
                return right.scaled(left.constant)
            return Affine({_product(expr): 1})
    if isinstance(expr, Cast) and isinstance(expr.value, IntImm):
        return Affine({}, expr.value.value)
    return Affine({expr: 1})


def _product(expr: Binary) -> Expr:
    """A product of two terms with its operands in order, so that `n*m` and `m*n` are one term."""
    if _order(expr.lhs) <= _order(expr.rhs):
        return expr
    return Binary(BinaryOp.MUL, expr.rhs, expr.lhs)


def _order(term: Expr) -> tuple[int, str]:
    text = expr_text(term)
    return (len(text), text)


def expression_of(affine: Affine, dtype: DType, first: Iterable[Expr] = ()) -> Expr:
    """The normal form as an expression of `dtype`: added terms by falling coefficient, subtracted terms, the constant;
    the constant first if nothing else is added.

    Terms with one coefficient are multiplied by it once. Terms of `first` decide ties, in their order; the rest is
    ordered by text. Added terms come first, so that no partial sum of non-negative terms is negative.
    """
    rank = {term: position for position, term in enumerate(first)}
    groups: dict[int, list[Expr]] = {}
    for term in sorted(affine.terms, key=lambda t: (rank.get(t, len(rank)), _order(t))):
        groups.setdefault(affine.terms[term], []).append(widen(term, dtype))
    constant = affine.constant
    result: Expr | None = None
    if constant > 0 and groups and all(coefficient < 0 for coefficient in groups):
        # `15 - k` rather than `k * -1 + 15`.
        result, constant = const(constant, dtype), 0
    for coefficient in sorted(groups, key=lambda c: (c < 0, -abs(c))):
        inner = reduce(lambda a, b: binary(BinaryOp.ADD, a, b), groups[coefficient])
        if result is None:
            result = inner if coefficient == 1 else binary(BinaryOp.MUL, inner, const(coefficient, dtype))
        else:
            part = inner if abs(coefficient) == 1 else binary(BinaryOp.MUL, inner, const(abs(coefficient), dtype))
            result = binary(BinaryOp.ADD if coefficient > 0 else BinaryOp.SUB, result, part)
    if result is None:
        return const(constant, dtype)
    if constant == 0:
        return result
    return binary(BinaryOp.ADD if constant > 0 else BinaryOp.SUB, result, const(abs(constant), dtype))


Monomial = tuple[Expr, ...]
Polynomial = Mapping[Monomial, int]
"""Coefficients, none of them zero, by products of terms in a canonical order; the empty product has the constant."""


def polynomial(expr: Expr) -> Polynomial:
    """The normal form of sums, differences and products; anything else is a term."""
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
    """The polynomial as an expression: added terms first, so that no partial sum is negative needlessly."""
    dtype = _type_of(value)
    result: Expr | None = None
    for monomial, coefficient in sorted(value.items(), key=lambda item: (item[1] < 0, item[0] == (), -abs(item[1]))):
        part = _monomial_expression(monomial, abs(coefficient), dtype)
        if result is None:
            result = part if coefficient > 0 else binary(BinaryOp.SUB, const(0, dtype), part)
        else:
            result = binary(BinaryOp.ADD if coefficient > 0 else BinaryOp.SUB, result, part)
    return result if result is not None else const(0, dtype)


def _type_of(value: Polynomial) -> DType:
    return max((term.dtype for monomial in value for term in monomial), key=lambda dtype: dtype.bits, default=INT32)


def _monomial_expression(monomial: Monomial, coefficient: int, dtype: DType) -> Expr:
    factors = [widen(term, dtype) for term in monomial]
    if coefficient != 1 or not factors:
        factors.append(const(coefficient, dtype))
    return reduce(lambda a, b: binary(BinaryOp.MUL, a, b), factors)


@dataclass(frozen=True, slots=True)
class Steps:
    """`base + sum(by_loop[v] * v)`; the base and the steps are free of loops."""

    base: Polynomial
    by_loop: Mapping[Var, Polynomial]

    def of(self, loop: Var) -> int | None:
        """The step of one loop if it is constant."""
        return number(self.by_loop.get(loop, {}))


def steps_of(index: Expr, loops: Collection[Var]) -> Steps | None:
    """An index as steps of loops; None if it is no such sum."""
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


_INTEGER: Mapping[BinaryOp, Callable[[int, int, DType], int]] = {
    BinaryOp.ADD: lambda a, b, t: semantics.wrap(a + b, t),
    BinaryOp.SUB: lambda a, b, t: semantics.wrap(a - b, t),
    BinaryOp.MUL: lambda a, b, t: semantics.wrap(a * b, t),
    BinaryOp.FLOORDIV: lambda a, b, t: semantics.divide("floordiv", a, b, t),
    BinaryOp.FLOORMOD: lambda a, b, t: semantics.divide("floormod", a, b, t),
    BinaryOp.TRUNCDIV: lambda a, b, t: semantics.divide("truncdiv", a, b, t),
    BinaryOp.TRUNCMOD: lambda a, b, t: semantics.divide("truncmod", a, b, t),
    BinaryOp.MIN: lambda a, b, t: min(a, b),
    BinaryOp.MAX: lambda a, b, t: max(a, b),
    BinaryOp.BITAND: lambda a, b, t: a & b,
    BinaryOp.BITOR: lambda a, b, t: a | b,
    BinaryOp.BITXOR: lambda a, b, t: a ^ b,
    BinaryOp.SHL: semantics.shift_left,
    BinaryOp.SHR: semantics.shift_right,
}

# Sums, differences and products of two numbers of at most 24 bits of precision, rounded from float64, are rounded once
# (`interp.number`).
_FLOAT: Mapping[BinaryOp, Callable[[float, float], float]] = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.SUB: lambda a, b: a - b,
    BinaryOp.MUL: lambda a, b: a * b,
    BinaryOp.MIN: semantics.select_min,
    BinaryOp.MAX: semantics.select_max,
}


def fold_constants(expr: Expr) -> Expr:
    """The constant that an operation on constants gives; the expression itself if it has other operands or traps."""
    try:
        if isinstance(expr, Binary):
            return _binary(expr)
        if (
            isinstance(expr, Compare)
            and isinstance(expr.lhs, IntImm | FloatImm)
            and isinstance(expr.rhs, IntImm | FloatImm)
        ):
            return const(COMPARISONS[expr.op](expr.lhs.value, expr.rhs.value))
        if isinstance(expr, Cast) and isinstance(expr.value, IntImm | FloatImm):
            value = semantics.cast_value(expr.value.value, expr.value.dtype, expr.dtype)
            return FloatImm(float(value), expr.dtype) if expr.dtype.is_float else IntImm(int(value), expr.dtype)
    except Trap:
        return expr
    return expr


def _binary(expr: Binary) -> Expr:
    if isinstance(expr.lhs, IntImm) and isinstance(expr.rhs, IntImm) and expr.dtype.is_integer:
        return IntImm(_INTEGER[expr.op](expr.lhs.value, expr.rhs.value, expr.dtype), expr.dtype)
    operation = _FLOAT.get(expr.op)
    if operation is not None and isinstance(expr.lhs, FloatImm) and isinstance(expr.rhs, FloatImm):
        return FloatImm(semantics.round_float(operation(expr.lhs.value, expr.rhs.value), expr.dtype), expr.dtype)
    return expr
