"""The integer solutions of linear equations, with free integer variables; monomials count as names here.

Nothing here is trusted: what it finds becomes part of a refutation that the kernel checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import gcd
from typing import TypeVar

from layoutproof.verify.kernel.polynomials import Monomial, Poly

Linear = dict[int, int]  # coefficients of free variables
_EchelonRow = tuple[Monomial, dict[Monomial, Fraction], dict[int, Fraction]]
_NOTHING = Fraction(0)


class Lattice:
    """Every column (a monomial) as an affine form of free variables that satisfies the equations.

    Each free variable is an integer form of columns. If there is no solution, `unsolvable` is (zero number, form,
    divisor, constant): that zero says, given those before, that `divisor * form + constant == 0` for an integer form
    and a constant that is no multiple of the divisor.
    """

    def __init__(self, columns: Sequence[Monomial], zeros: Iterable[Poly]) -> None:
        self.zeros = tuple(zeros)
        self.unsolvable: tuple[int, Poly, int, int] | None = None
        self._column: dict[Monomial, tuple[Linear, int]] = {c: ({i: 1}, 0) for i, c in enumerate(columns)}
        self._form: list[dict[Monomial, int]] = [{c: 1} for c in columns]
        self._echelon: list[_EchelonRow] | None = None
        self._affine: dict[Poly, tuple[Linear, int]] = {}
        for number, zero in enumerate(self.zeros):
            if self.unsolvable is None:
                self._solve(number, zero)

    @property
    def count(self) -> int:
        """The number of variables, eliminated ones too."""
        return len(self._form)

    def affine(self, poly: Poly) -> tuple[Linear, int]:
        """A polynomial as an affine form of free variables, not to be changed. Its monomials are columns."""
        known = self._affine.get(poly)
        if known is None:
            known = self._affine[poly] = self._affine_form(poly)
        return known

    def _affine_form(self, poly: Poly) -> tuple[Linear, int]:
        linear: Linear = {}
        constant = 0
        for monomial, coefficient in poly.terms:
            if not monomial:
                constant += coefficient
                continue
            of, offset = self._column[monomial]
            constant += coefficient * offset
            for variable, c in of.items():
                linear[variable] = linear.get(variable, 0) + coefficient * c
        return {variable: c for variable, c in linear.items() if c}, constant

    def column(self, monomial: Monomial) -> tuple[Linear, int]:
        """A column as an affine form of free variables."""
        return self._column[monomial]

    def has(self, monomial: Monomial) -> bool:
        """Whether the monomial is a column, or the constant."""
        return not monomial or monomial in self._column

    def form(self, linear: Mapping[int, int]) -> Poly:
        """A form of free variables as a polynomial over the columns."""
        total: dict[Monomial, int] = {}
        for variable, coefficient in linear.items():
            for monomial, c in self._form[variable].items():
                total[monomial] = total.get(monomial, 0) + coefficient * c
        return Poly.of(total)

    def _solve(self, number: int, zero: Poly) -> None:
        linear, constant = self._affine_form(zero)
        if not linear:
            if constant != 0:
                self.unsolvable = number, Poly(), 0, constant
            return
        divisor = gcd(*linear.values())
        if constant % divisor:
            form = self.form({variable: c // divisor for variable, c in linear.items()})
            self.unsolvable = number, form, divisor, constant
            return
        linear = {variable: c // divisor for variable, c in linear.items()}
        constant //= divisor
        while True:
            # The last of the smallest coefficients: products come after names, and names are kept.
            least = min(linear, key=lambda variable: (abs(linear[variable]), -variable))
            pivot = linear[least]
            if abs(pivot) == 1:
                of = {variable: -c * pivot for variable, c in linear.items() if variable != least}
                self._substitute(least, of, -constant * pivot)
                return
            sign, size = (1, pivot) if pivot > 0 else (-1, -pivot)
            quotients = {v: sign * q for v, c in linear.items() if v != least and (q := (c + size // 2) // size)}
            self._combine(least, quotients)
            linear = {v: c - pivot * quotients.get(v, 0) if v != least else c for v, c in linear.items()}
            linear = {v: c for v, c in linear.items() if c}

    def _combine(self, variable: int, quotients: Linear) -> None:
        """Takes `variable + sum of quotient * other` as the free variable in the place of `variable`."""
        form = self._form[variable]
        for other, quotient in quotients.items():
            for monomial, c in self._form[other].items():
                form[monomial] = form.get(monomial, 0) + quotient * c
        self._substitute(variable, {variable: 1} | {other: -quotient for other, quotient in quotients.items()}, 0)

    def _substitute(self, variable: int, by: Linear, offset: int) -> None:
        for monomial, (of, constant) in self._column.items():
            factor = of.get(variable)
            if factor is None:
                continue
            new = {v: c for v, c in of.items() if v != variable}
            for other, c in by.items():
                new[other] = new.get(other, 0) + factor * c
            self._column[monomial] = {v: c for v, c in new.items() if c}, constant + factor * offset

    def multipliers(self, poly: Poly) -> dict[int, Fraction]:
        """Factors of the zeros, by number, whose sum with `poly` is a constant: if it is constant where they are 0."""
        if self._echelon is None:
            self._echelon = self._eliminate()
        factors: dict[int, Fraction] = {}
        rest = {monomial: Fraction(c) for monomial, c in poly.terms}
        for pivot, row, combination in self._echelon:
            factor = rest.get(pivot)
            if factor:
                _subtract(rest, factor, row)
                _subtract(factors, factor, combination)
        return factors

    def _eliminate(self) -> list[_EchelonRow]:
        """Rows whose pivot has coefficient 1 and occurs in no later row, each a combination of the zeros."""
        rows: list[_EchelonRow] = []
        for number, zero in enumerate(self.zeros):
            rest = {monomial: Fraction(c) for monomial, c in zero.terms}
            combination = {number: Fraction(1)}
            for pivot, row, row_combination in rows:
                factor = rest.get(pivot)
                if factor:
                    _subtract(rest, factor, row)
                    _subtract(combination, factor, row_combination)
            chosen = next((monomial for monomial in rest if monomial), None)
            if chosen is not None:
                scale = rest[chosen]
                rows.append((chosen, _divided(rest, scale), _divided(combination, scale)))
        return rows


_Key = TypeVar("_Key", Monomial, int)


def _subtract(total: dict[_Key, Fraction], factor: Fraction, row: Mapping[_Key, Fraction]) -> None:
    """Subtracts a multiple; zeros are left out."""
    for key, c in row.items():
        value = total.get(key, _NOTHING) - factor * c
        if value:
            total[key] = value
        else:
            del total[key]


def _divided(row: Mapping[_Key, Fraction], scale: Fraction) -> dict[_Key, Fraction]:
    return {key: c / scale for key, c in row.items()}
