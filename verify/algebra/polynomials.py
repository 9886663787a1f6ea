"""Integer polynomials as dictionaries, their atoms, and the ranges of atoms: by numbers, and by inequalities between
polynomials. A shared polynomial is never changed. Part of the trusted computing base.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeVar

Monomial = tuple[int, ...]  # atom numbers, ascending; the empty one is the constant
Poly = dict[Monomial, int]  # no zero coefficients
Range = tuple[int | None, int | None]

ONE: Final[Monomial] = ()

# Sums and quotients work for any atoms; those of `radix.py` are expressions.
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


class AtomKind(Enum):
    """What an atom is."""

    NAME = auto()
    FLOOR = auto()
    XOR = auto()


@dataclass(slots=True)
class Atom:
    """`low` and `high` bound it by numbers, `greatest` by a polynomial over earlier atoms.

    A floor atom has its numerator and its divisor in `parts`, an XOR atom its operands; `support` is a set of unknowns.
    """

    kind: AtomKind
    name: str
    parts: tuple[Poly, ...]
    low: int | None
    high: int | None
    greatest: Poly | None = None
    support: int = 0


class Bounded:
    """A set of atoms with their bounds."""

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self._nonnegative: dict[object, bool] = {}
        self.facts: list[Poly] = []  # forms over symbols that are known to be at least 0

    def support(self, poly: Poly) -> int:
        """The unknowns a polynomial depends on, as a bit set."""
        atoms, result = self.atoms, 0
        for monomial in poly:
            for atom in monomial:
                result |= atoms[atom].support
        return result

    def atoms_below(self, polys: Iterable[Poly]) -> set[int]:
        """Every atom in the polynomials, inside divisions and XORs too."""
        found: set[int] = set()
        stack = [atom for poly in polys for monomial in poly for atom in monomial]
        while stack:
            atom = stack.pop()
            if atom not in found:
                found.add(atom)
                stack.extend(a for part in self.atoms[atom].parts for monomial in part for a in monomial)
        return found

    # Ranges

    def _monomial_range(self, monomial: Monomial) -> Range:
        atom = self.atoms[monomial[0]]
        low, high = atom.low, atom.high
        for number in monomial[1:]:
            other = self.atoms[number]
            if low is None or high is None or other.low is None or other.high is None:
                nonnegative = low is not None and low >= 0 and other.low is not None and other.low >= 0
                high = None
                low = low * other.low if nonnegative and low is not None and other.low is not None else None
                continue
            corners = (low * other.low, low * other.high, high * other.low, high * other.high)
            low, high = min(corners), max(corners)
        return low, high

    def range_of(self, poly: Poly, depth: int = 3) -> Range:
        """Numbers that bound the polynomial, if any; `N - k*(N//k)` is known to be in `[0, k)`."""
        low: int | None = 0
        high: int | None = 0
        divided: list[Monomial] = []
        for monomial, c in poly.items():
            if monomial == ONE:
                a: int | None = c
                b: int | None = c
            else:
                a, b = self._monomial_range(monomial)
                a, b = (None if a is None else a * c), (None if b is None else b * c)
                if c < 0:
                    a, b = b, a
                if len(monomial) == 1 and self.atoms[monomial[0]].kind is AtomKind.FLOOR:
                    divided.append(monomial)
            low = None if low is None or a is None else low + a
            high = None if high is None or b is None else high + b
        if divided and depth and len(poly) > 1:
            for monomial in divided:
                for found in (
                    self._range_as_remainder(poly, monomial, depth),
                    self._range_as_digit(poly, monomial, divided, depth),
                ):
                    if found is not None:
                        low = found[0] if low is None or (found[0] is not None and found[0] > low) else low
                        high = found[1] if high is None or (found[1] is not None and found[1] < high) else high
        return low, high

    def _range_as_remainder(self, poly: Poly, monomial: Monomial, depth: int) -> Range | None:
        """The range of `poly` read as `t * (N % k) + rest`, for the division in `monomial`, if it has this form."""
        numerator, divisor = self.atoms[monomial[0]].parts
        k = constant_of(divisor)
        times, odd = divmod(-poly[monomial], k) if k is not None else (0, 1)
        if k is None or odd:
            return None
        if not any(m != ONE and poly.get(m, 0) == times * c for m, c in numerator.items()):
            return None
        rest = add(poly, numerator, -times)
        rest.pop(monomial)
        if len(rest) >= len(poly):
            return None
        low, high = self.range_of(rest, depth - 1)
        ends = (0, times * (k - 1))
        return (None if low is None else low + min(ends)), (None if high is None else high + max(ends))

    def _range_as_digit(self, poly: Poly, monomial: Monomial, divided: list[Monomial], depth: int) -> Range | None:
        """The range of `poly` read as `t * (N//d % k) + rest`, for the division `N//(d*k)`, if it has this form."""
        numerator, divisor = self.atoms[monomial[0]].parts
        large = constant_of(divisor)
        if large is None:
            return None
        for other in divided:
            inner, small = self.atoms[other[0]].parts
            d, times = constant_of(small), poly[other]
            if other == monomial or d is None or not 0 < d < large or large % d or inner != numerator:
                continue
            k = large // d
            if poly[monomial] != -times * k:
                continue
            # (N//d)//k is N//(d*k), so the two terms are t times a remainder by k.
            low, high = self.range_of({m: c for m, c in poly.items() if m not in (monomial, other)}, depth - 1)
            ends = (0, times * (k - 1))
            return (None if low is None else low + min(ends)), (None if high is None else high + max(ends))
        return None

    # Inequalities between polynomials

    def is_nonnegative(self, poly: Poly) -> bool:
        """Whether `poly >= 0` is proved for all values of the atoms; false means not proved."""
        low, _ = self.range_of(poly)
        if low is not None:
            if low >= 0:
                return True
            atoms = [self.atoms[a] for m in poly for a in m]
            if all(atom.greatest is None and atom.kind is not AtomKind.FLOOR for atom in atoms):
                return False
        key = key_of(poly)
        known = self._nonnegative.get(key)
        if known is None:
            self._nonnegative[key] = False  # a circular question is not proved
            known = self._nonnegative[key] = self._eliminate(poly, {ONE: 1}, 12)
        return known

    def _eliminate(self, bound: Poly, scaled: Poly, depth: int) -> bool:
        """Prove `P >= 0` from `scaled * P >= bound`: atoms are replaced by their bounds, latest first.

        P is an integer and `scaled` positive, so `bound + scaled - 1 >= 0` is enough.
        """
        if self._is_plainly_nonnegative(plus(add(bound, scaled), -1)):
            return True
        number = max((a for m in bound for a in m if not self.is_symbol(a)), default=None)
        if depth == 0 or number is None or any(m.count(number) > 1 for m in bound):
            return False
        inner = {tuple(a for a in m if a != number): c for m, c in bound.items() if number in m}
        rest = {m: c for m, c in bound.items() if number not in m}
        if self._is_plainly_nonnegative(inner):
            sign = 1
        elif self._is_plainly_nonnegative(scale(inner, -1)):
            sign = -1
        else:
            return False
        atom = self.atoms[number]
        if atom.kind is AtomKind.FLOOR:
            numerator, divisor = atom.parts
            end = numerator if sign < 0 else plus(add(numerator, divisor, -1), 1)
            if self._eliminate(
                add(multiply(inner, end), multiply(divisor, rest)), multiply(scaled, divisor), depth - 1
            ):
                return True
        polynomial, end_value = (None, atom.low) if sign > 0 else (atom.greatest, atom.high)
        for value in (polynomial, None if end_value is None else constant(end_value)):
            if value is not None and self._eliminate(add(multiply(inner, value), rest), scaled, depth - 1):
                return True
        return False

    def _is_plainly_nonnegative(self, poly: Poly) -> bool:
        return self._shifted_nonnegative(poly) or (bool(self.facts) and self._follows(poly))

    def _follows(self, target: Poly) -> bool:
        """Whether the form is a fact, times a coefficient of its own, plus something that is at least 0."""
        sizes = {abs(c) for c in target.values()}
        return any(self._shifted_nonnegative(add(target, fact, -size)) for fact in self.facts for size in sizes)

    def is_symbol(self, number: int) -> bool:
        """Whether the atom is a name with a least value and no greatest one: a symbol of the shape."""
        atom = self.atoms[number]
        return atom.kind is AtomKind.NAME and atom.high is None and atom.greatest is None and atom.low is not None

    def _shifted_nonnegative(self, poly: Poly) -> bool:
        """Whether every coefficient is nonnegative once each symbol is written as its least value plus something."""
        shifted = poly
        for number in {a for m in poly for a in m}:
            if not self.is_symbol(number):
                return all(c >= 0 for c in shifted.values()) and all(
                    low is not None and low >= 0 for low in (self.atoms[a].low for m in shifted for a in m)
                )
            low = self.atoms[number].low
            if low:
                shifted = _shift(shifted, number, low)
        return all(c >= 0 for c in shifted.values())


def _shift(poly: Poly, number: int, by: int) -> Poly:
    """The polynomial with the name `number` replaced by itself plus `by`."""
    result: Poly = {}
    moved: Poly = {(number,): 1, ONE: by}
    for monomial, c in poly.items():
        term: Poly = {tuple(a for a in monomial if a != number): c}
        for _ in range(monomial.count(number)):
            term = multiply(term, moved)
        result = add(result, term)
    return result
