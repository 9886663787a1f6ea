"""Sums of multiples of terms, in one canonical order: the normal form that index arithmetic is compared and rebuilt in.

The checker's polynomials (`verify/algebra/polynomials.py`, `verify/algebra/radix.py`) are apart on purpose: what proposes and what proves
share no normal form, so that a mistake in one cannot hide in the other.

Everything here is about mathematical integers. A caller uses it only where every sub-expression is known to fit its type, so that
fixed-width arithmetic and integer arithmetic agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Binary, BinaryOp, Cast, Expr, IntImm, binary, const, widen
from layoutproof.ir.text import expr_text


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
        """`(q, r)` with `self == divisor * q + r`: what `divisor` divides, and the rest with 0 <= r.constant < divisor."""
        whole = {t: c // divisor for t, c in self.terms.items() if c % divisor == 0}
        rest = {t: c for t, c in self.terms.items() if c % divisor != 0}
        return Affine(whole, self.constant // divisor), Affine(rest, self.constant % divisor)

    @property
    def is_constant(self) -> bool:
        """Whether there is no term."""
        return not self.terms


def affine_of(expr: Expr) -> Affine:
    """The normal form of index arithmetic; what is not a sum or a multiple by a constant is a term as it stands."""
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
    """The normal form as an expression of `dtype`: what is added by falling coefficient, then what is subtracted, then the constant;
    the constant first where nothing else is added.

    Terms with one coefficient are multiplied by it once. Terms of `first` decide ties, in their order; the rest is ordered by text.
    Added terms come first, so that no partial sum of non-negative terms goes below zero.
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
