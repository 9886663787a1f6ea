"""Polynomials with integer coefficients over named integers, in one normal form: equal polynomials have equal terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from layoutproof.verify.kernel.rejected import Rejected

Monomial = tuple[str, ...]  # sorted names, repeated for powers; () is the constant

# Evidence may have any size. These limits bound the time and memory that one polynomial of it can take.
MAX_TERMS, MAX_DEGREE, MAX_BITS = 10_000, 32, 4096
MAX_PRODUCT = 1_000_000  # pairs of terms multiplied by one product


@dataclass(frozen=True, slots=True)
class Poly:
    """A polynomial. `terms` is sorted by monomial, has each monomial once and no coefficient 0."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    @staticmethod
    def of(coefficients: Mapping[Monomial, int]) -> Poly:
        """The polynomial with these coefficients; the names of each monomial are sorted already."""
        return Poly(tuple(sorted(term for term in coefficients.items() if term[1] != 0)))

    @staticmethod
    def const(value: int) -> Poly:
        """A constant."""
        return Poly((((), value),)) if value != 0 else Poly()

    @staticmethod
    def var(name: str) -> Poly:
        """A name."""
        return Poly((((name,), 1),))

    def __add__(self, other: Poly | int) -> Poly:
        total = dict(self.terms)
        for monomial, coefficient in _poly(other).terms:
            total[monomial] = total.get(monomial, 0) + coefficient
        return Poly.of(total)

    def __mul__(self, other: Poly | int) -> Poly:
        factor = _poly(other)
        if len(self.terms) * len(factor.terms) > MAX_PRODUCT:
            raise Rejected("a product of polynomials is too large")
        total: dict[Monomial, int] = {}
        for left, k in self.terms:
            for right, n in factor.terms:
                monomial = tuple(sorted(left + right))
                total[monomial] = total.get(monomial, 0) + k * n
        return Poly.of(total)

    def __neg__(self) -> Poly:
        return Poly(tuple((monomial, -coefficient) for monomial, coefficient in self.terms))

    def __sub__(self, other: Poly | int) -> Poly:
        return self + -other

    def __rsub__(self, other: int) -> Poly:
        return -self + other

    __radd__, __rmul__ = __add__, __mul__

    @property
    def constant(self) -> int:
        """The coefficient of the constant monomial, which sorts first."""
        return self.terms[0][1] if self.terms and not self.terms[0][0] else 0

    @property
    def is_constant(self) -> bool:
        """Whether no name occurs."""
        return not any(monomial for monomial, _ in self.terms)

    def names(self) -> frozenset[str]:
        """The names that occur."""
        return frozenset(name for monomial, _ in self.terms for name in monomial)

    def to_json(self) -> list[list[object]]:
        """Pairs of a coefficient and a monomial."""
        return [[coefficient, list(monomial)] for monomial, coefficient in self.terms]

    @staticmethod
    def from_json(data: object) -> Poly:
        """Reads what `to_json` writes, in any order. Raises Rejected for anything else."""
        total: dict[Monomial, int] = {}
        for term in list_of(data, MAX_TERMS, "a polynomial"):
            coefficient, monomial_json = pair_of(term, "a term of a polynomial")
            names = list_of(monomial_json, MAX_DEGREE, "a monomial")
            if not all(type(name) is str for name in names):
                raise Rejected("a name in a monomial is not a string")
            monomial = tuple(sorted(cast("list[str]", names)))
            total[monomial] = total.get(monomial, 0) + integer_of(coefficient, "a coefficient")
        return Poly.of(total)


def _poly(value: Poly | int) -> Poly:
    return Poly.const(value) if isinstance(value, int) else value


def integer_of(data: object, what: str) -> int:
    """An integer of at most MAX_BITS bits; True and False are none. Raises Rejected for anything else."""
    if type(data) is not int or data.bit_length() > MAX_BITS:
        raise Rejected(f"{what} is not an integer of at most {MAX_BITS} bits")
    return data


def list_of(data: object, limit: int, what: str) -> list[object]:
    """A list of at most `limit` items. Raises Rejected for anything else."""
    if type(data) is not list or len(cast("list[object]", data)) > limit:
        raise Rejected(f"{what} is not a list of at most {limit} items")
    return cast("list[object]", data)


def pair_of(data: object, what: str) -> tuple[object, object]:
    """A list of two items. Raises Rejected for anything else."""
    items = list_of(data, 2, what)
    if len(items) != 2:
        raise Rejected(f"{what} is not a list of two items")
    return items[0], items[1]
