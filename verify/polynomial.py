"""Integer polynomials as dictionaries: the arithmetic of the normal form in `ring.py`. Part of the trust base.

A polynomial is never changed once it was handed out.
"""

from __future__ import annotations

from typing import Final, TypeVar

Monomial = tuple[int, ...]  # atom numbers, ascending; the empty one is the constant
Poly = dict[Monomial, int]  # no zero coefficients
Range = tuple[int | None, int | None]

ONE: Final[Monomial] = ()

# Sums and quotients do not ask what atoms are: `radix.py` has expressions for them, where no ring knows their ranges.
A = TypeVar("A")
Term = TypeVar("Term")


class GiveUp(Exception):
    """The normal form cannot state or decide something; another engine may."""


def constant(value: int) -> Poly:
    """The constant polynomial."""
    return {ONE: value} if value else {}


def constant_of(poly: Poly) -> int | None:
    """The value of a constant polynomial, None for any other."""
    if not poly:
        return 0
    return poly[ONE] if len(poly) == 1 and ONE in poly else None


def add(a: dict[Term, int], b: dict[Term, int], factor: int = 1) -> dict[Term, int]:
    """`a + factor * b`, for a factor that is not 0."""
    result = dict(a)
    for monomial, coefficient in b.items():
        total = result.get(monomial, 0) + factor * coefficient
        if total:
            result[monomial] = total
        else:
            del result[monomial]
    return result


def plus(a: Poly, value: int) -> Poly:
    """`a + value`."""
    return add(a, {ONE: value}) if value else a


def scale(a: Poly, factor: int) -> Poly:
    """`factor * a`."""
    if factor == 1:
        return a
    return {m: c * factor for m, c in a.items()} if factor else {}


def multiply(a: Poly, b: Poly) -> Poly:
    """`a * b`."""
    for x, y in ((a, b), (b, a)):
        number = constant_of(x)
        if number is not None:
            return scale(y, number)
    result: Poly = {}
    for m, c in a.items():
        for n, d in b.items():
            key = tuple(sorted(m + n))
            total = result.get(key, 0) + c * d
            if total:
                result[key] = total
            else:
                result.pop(key, None)
    return result


def key_of(poly: Poly) -> frozenset[tuple[Monomial, int]]:
    """A hashable form, equal for equal polynomials."""
    return frozenset(poly.items())


def quotient_of(monomial: tuple[A, ...], divisor: tuple[A, ...]) -> tuple[A, ...] | None:
    """`monomial / divisor` where it divides, else None."""
    rest = list(monomial)
    for atom in divisor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def tuple_without(monomial: Monomial, atom: int) -> Monomial:
    """The monomial with one occurrence of the atom taken out."""
    position = monomial.index(atom)
    return monomial[:position] + monomial[position + 1 :]


def power_of_two(value: int) -> bool:
    """Whether `value` is 1, 2, 4, ..."""
    return value > 0 and value & (value - 1) == 0
