"""Normal forms of `ring.py` as short readable expressions, with remainders found again: `x - 4*(x//4)` is printed as
`x % 4`.
"""

from __future__ import annotations

from collections.abc import Mapping

from layoutproof.ir.dtype import INT32, INT64, DType
from layoutproof.ir.expr import Binary, Expr, Var, binary
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.text import expr_text
from layoutproof.verify.algebra.lift import NumberTooWide, number
from layoutproof.verify.algebra.polynomials import (
    ONE,
    AtomKind,
    Monomial,
    Poly,
    Range,
    add,
    constant_of,
    quotient_of,
)
from layoutproof.verify.algebra.ring import Ring


class Renderer:
    """Prints forms of one ring; `names` gives the expression of a named atom where it is not simply its name."""

    def __init__(self, ring: Ring, names: Mapping[int, Expr] | None = None, widest: DType = INT32) -> None:
        self.ring = ring
        self.widest = widest
        self._names: dict[int, Expr] = dict(names) if names is not None else {}
        self.ranges: dict[Expr, Range] = {}

    def expr(self, poly: Poly) -> Expr:
        """The form as an expression: larger factors first, remainders found."""
        if len(poly) == 2 and ONE in poly:
            folded = self._quotient_and_constant(poly)
            if folded is not None:
                return folded
        return join(self.terms(poly), self.widest)

    def _quotient_and_constant(self, poly: Poly) -> Expr | None:
        """`(n + 4)//4` for `n//4 + 1`, over symbols only: the usual form of an extent."""
        (monomial,) = (m for m in poly if m != ONE)
        atom = self.ring.atoms[monomial[0]]
        if poly[monomial] != 1 or len(monomial) != 1 or atom.kind is not AtomKind.FLOOR or poly[ONE] < 0:
            return None
        numerator, divisor = atom.parts
        if not all(self.ring.is_symbol(a) for a in self.ring.atoms_below([numerator, divisor])):
            return None
        return join(self.terms(add(numerator, divisor, poly[ONE])), self.widest) // self.expr(divisor)

    def terms(self, poly: Poly) -> list[tuple[int, Expr | None]]:
        """The form as `factor * expression` terms, in printing order; the expression None is the constant, the last."""
        found: list[tuple[int, int, Monomial, Expr | None]] = []
        rest = dict(poly)
        for monomial in sorted(poly, reverse=True):
            if monomial in rest and len(monomial) >= 1:
                remainder = self._remainder(rest, monomial)
                if remainder is not None:
                    times, first, expr = remainder
                    found.append((1, times, first, expr))
        for monomial, c in rest.items():
            if monomial != ONE:
                product = self._product(monomial)
                self.ranges[product] = self.ring.range_of({monomial: 1})
                found.append((len(monomial), c, monomial, product))
        found.sort(key=lambda t: (-t[0], -abs(t[1]), any(self.ring.is_symbol(a) for a in t[2]), t[2]))
        result: list[tuple[int, Expr | None]] = [(c, e) for _, c, _, e in found]
        if rest.get(ONE):
            result.append((rest[ONE], None))
        return result

    def _product(self, monomial: Monomial) -> Expr:
        result: Expr | None = None
        for atom in monomial:
            factor = self._atom(atom)
            result = factor if result is None else result * factor
        assert result is not None
        return result

    def _atom(self, number: int) -> Expr:
        known = self._names.get(number)
        if known is not None:
            return known
        atom = self.ring.atoms[number]
        match atom.kind:
            case AtomKind.NAME:
                known = Var(atom.name)
            case AtomKind.FLOOR:
                known = self.expr(atom.parts[0]) // self.expr(atom.parts[1])
            case AtomKind.XOR:
                known = self.expr(atom.parts[0])
                for part in atom.parts[1:]:
                    known = known ^ self.expr(part)
        self._names[number] = known
        return known

    def _remainder(self, rest: Poly, monomial: Monomial) -> tuple[int, Monomial, Expr] | None:
        """Take `times * (N % k)` out of `rest`, where `monomial` is its division (times a symbolic divisor)."""
        for position in monomial:
            atom = self.ring.atoms[position]
            if atom.kind is not AtomKind.FLOOR:
                continue
            numerator, divisor = atom.parts
            others = quotient_of(monomial, (position,))
            if len(divisor) != 1 or others is None:
                continue
            ((symbols, k),) = divisor.items()
            if others != symbols or rest[monomial] % k:
                continue
            times = -rest[monomial] // k
            shown = {m: c for m, c in numerator.items() if m != ONE}
            if shown and all(rest.get(m) == times * c for m, c in shown.items()):
                return self._take(rest, monomial, times, numerator, divisor)
        if len(monomial) == 1 and self.ring.atoms[monomial[0]].kind is AtomKind.FLOOR:
            return self._nested_remainder(rest, monomial)
        return None

    def _nested_remainder(self, rest: Poly, monomial: Monomial) -> tuple[int, Monomial, Expr] | None:
        """`times * (u % k)` where `u // k` is the division `monomial`, also of another numerator: `(x//4) % 8`,
        `x//32`.

        The factor of `u` need not be `times` exactly, if the rest of it is smaller.
        """
        c = rest[monomial]
        whole = constant_of(self.ring.atoms[monomial[0]].parts[1])
        if whole is None:
            return None
        for other, factor in list(rest.items()):
            if other == monomial or len(other) != 1:
                continue
            atom = self.ring.atoms[other[0]]
            part = constant_of(atom.parts[1]) if atom.kind is AtomKind.FLOOR else 1
            if part is None or whole % part or c % (whole // part):
                continue
            k = whole // part
            times = -c // k
            if k > 1 and abs(factor - times) < abs(factor) and self.ring.floor_by({other: 1}, k) == {monomial: 1}:
                return self._take(rest, monomial, times, {other: 1}, {ONE: k})
        return None

    def _take(
        self, rest: Poly, monomial: Monomial, times: int, numerator: Poly, divisor: Poly
    ) -> tuple[int, Monomial, Expr]:
        del rest[monomial]
        left = add(rest, numerator, -times)
        rest.clear()
        rest.update(left)
        remainder = self.expr(numerator) % self.expr(divisor)
        k = constant_of(divisor)
        self.ranges[remainder] = (0, None if k is None else k - 1)
        return times, max(m for m in numerator if m != ONE), remainder


def join(terms: list[tuple[int, Expr | None]], widest: DType = INT32) -> Expr:
    """The sum of `factor * expression` terms, positive ones first, without factors of 1 or negative summands.

    A constant that stands alone is of 32 bits, or of type `widest` where it does not fit them. Raises NumberTooWide.
    """
    result: Expr | None = None
    for factor, expr in _ordered(terms) if len(terms) > 1 else terms:
        if expr is None:
            if result is None:
                result = number(factor, INT32 if INT32.min_int <= factor <= INT32.max_int else widest)
            else:
                op = BinaryOp.ADD if factor > 0 else BinaryOp.SUB
                result = Binary(op, result, number(abs(factor), result.dtype))
            continue
        if result is None:
            result = _scaled(factor, expr)
        else:
            result = binary(BinaryOp.ADD if factor > 0 else BinaryOp.SUB, result, _scaled(abs(factor), expr))
    return number(0) if result is None else result


def _ordered(terms: list[tuple[int, Expr | None]]) -> list[tuple[int, Expr | None]]:
    """A positive term first, where there is one; the constant last, unless it is the only positive term."""
    leading = any(factor > 0 and expr is not None for factor, expr in terms)
    return sorted(terms, key=lambda t: (t[1] is None and leading, t[0] < 0))


def _scaled(factor: int, expr: Expr) -> Expr:
    """`factor * expr`, the factor in front of a product."""
    if factor == 1:
        return expr
    if isinstance(expr, Binary) and expr.op is BinaryOp.MUL:
        return binary(BinaryOp.MUL, _scaled(factor, expr.lhs), expr.rhs)
    return Binary(BinaryOp.MUL, number(factor, expr.dtype), expr)


def size_expr(renderer: Renderer, size: Poly) -> Expr:
    """An extent as an expression."""
    value = constant_of(size)
    return renderer.expr(size) if value is None else number(value, INT32 if value <= INT32.max_int else INT64)


def size_text(renderer: Renderer, size: Poly) -> str:
    """An extent in a message."""
    value = constant_of(size)
    if value is not None:
        return str(value)  # It may be wider than any type.
    try:
        return expr_text(renderer.expr(size), "plain")
    except NumberTooWide as reason:
        return f"no number of its type ({reason})"
