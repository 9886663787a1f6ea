"""Expressions to the normal form of `ring.py`, and back to short readable expressions.

Lifting is exact or raises GiveUp. Rendering finds remainders again: `x - 4*(x//4)` is printed as `x % 4`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from layoutproof.ir.dtype import INT32, DType
from layoutproof.ir.expr import FALSE, Binary, Cast, Expr, IfThenElseExpr, IntImm, Select, Var, binary, const
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.operators import BinaryOp
from layoutproof.verify.algebra.enumeration import trap_condition
from layoutproof.verify.algebra.polynomials import (
    ONE,
    AtomKind,
    GiveUp,
    Monomial,
    Poly,
    Range,
    add,
    constant,
    constant_of,
    multiply,
    plus,
    quotient_of,
    scale,
)
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


# Back to expressions


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
        for number in monomial:
            factor = self._atom(number)
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
        for number in monomial:
            atom = self.ring.atoms[number]
            if atom.kind is not AtomKind.FLOOR:
                continue
            numerator, divisor = atom.parts
            others = quotient_of(monomial, (number,))
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


class NumberTooWide(Exception):
    """A constant of an answer that does not fit its type."""


@lru_cache(maxsize=4096)
def number(value: int, dtype: DType = INT32) -> Expr:
    """A constant, made once. Raises NumberTooWide."""
    if not dtype.min_int <= value <= dtype.max_int:
        raise NumberTooWide(f"{value} does not fit {dtype}")
    return const(value, dtype)


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
