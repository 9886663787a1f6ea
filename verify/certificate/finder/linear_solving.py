"""Linear equations and inequalities over integers, solved exactly: a simplex for bounds on linear forms, with Farkas
combinations of those that contradict each other, and the integer solutions of equations. For the search only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import TypeVar

from layoutproof.verify.kernel.polynomials import Monomial, Poly

_Form = tuple[tuple[int, int], ...]
Conflict = list[tuple[int, object]]  # positive factors of reasons: so combined, their bounds are a negative constant


class OutOfBudget(Exception):
    """More steps than the caller allows."""


class Budget:
    """The steps of a search that are left; a step takes some microseconds."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def spend(self, steps: int) -> None:
        """Raises OutOfBudget if so many steps are not left."""
        self._left -= steps
        if self._left < 0:
            raise OutOfBudget


@dataclass(slots=True)
class _Row:
    """`scale * basic variable = sum of coefficient * nonbasic variable`; `total` is the value of that sum."""

    scale: int
    of: dict[int, int]
    total: int


class Simplex:
    """Variables with integer bounds, each for a reason. `push` and `pop` keep and restore the bounds."""

    def __init__(self, count: int, budget: Budget) -> None:
        self.low: list[int | None] = [None] * count
        self.high: list[int | None] = [None] * count
        self.low_reason: list[object] = [None] * count
        self.high_reason: list[object] = [None] * count
        self._budget = budget
        self._value = [0] * count  # of nonbasic variables, always between their bounds
        self._rows: dict[int, _Row] = {}
        self._forms: dict[_Form, int] = {}
        self._keys: dict[int, _Form] = {}
        self._trail: list[tuple[int, bool, int | None, object]] = []
        self._marks: list[int] = []

    def push(self) -> None:
        """Remembers the bounds."""
        self._marks.append(len(self._trail))

    def pop(self) -> None:
        """Restores the bounds that the last `push` remembered."""
        mark = self._marks.pop()
        while len(self._trail) > mark:
            variable, is_low, bound, reason = self._trail.pop()
            if is_low:
                self.low[variable], self.low_reason[variable] = bound, reason
            else:
                self.high[variable], self.high_reason[variable] = bound, reason
            if self.low[variable] is None and self.high[variable] is None:
                self._forget(variable)

    def _forget(self, variable: int) -> None:
        """Drops the row of a form without bounds."""
        key = self._keys.get(variable)
        if key is not None and variable in self._rows:
            del self._rows[variable], self._keys[variable], self._forms[key]

    def variable(self, form: Mapping[int, int]) -> int:
        """The variable that stands for a linear form of variables."""
        if len(form) == 1:
            ((only, coefficient),) = form.items()
            if coefficient == 1:
                return only
        key = tuple(sorted(form.items()))
        known = self._forms.get(key)
        if known is not None:
            return known
        new = len(self._value)
        self._forms[key] = new
        self._keys[new] = key
        self.low.append(None)
        self.high.append(None)
        self.low_reason.append(None)
        self.high_reason.append(None)
        self._value.append(0)
        self._rows[new] = self._row(form)
        return new

    def _row(self, form: Mapping[int, int]) -> _Row:
        scale = 1
        for variable in form:
            if variable in self._rows:
                row_scale = self._rows[variable].scale
                scale *= row_scale // gcd(scale, row_scale)
        of: dict[int, int] = {}
        for variable, coefficient in form.items():
            row = self._rows.get(variable)
            if row is None:
                of[variable] = of.get(variable, 0) + coefficient * scale
            else:
                factor = coefficient * (scale // row.scale)
                for part, part_coefficient in row.of.items():
                    of[part] = of.get(part, 0) + factor * part_coefficient
        return self._normal(scale, of)

    def _normal(self, scale: int, of: dict[int, int]) -> _Row:
        divisor = gcd(scale, *of.values())
        if divisor > 1:
            scale //= divisor
            of = {variable: coefficient // divisor for variable, coefficient in of.items() if coefficient}
        else:
            of = {variable: coefficient for variable, coefficient in of.items() if coefficient}
        value = self._value
        return _Row(scale, of, sum(coefficient * value[variable] for variable, coefficient in of.items()))

    def value(self, variable: int) -> Fraction | int:
        """The value of a variable at the present point."""
        row = self._rows.get(variable)
        if row is None:
            return self._value[variable]
        whole, rest = divmod(row.total, row.scale)
        return whole if rest == 0 else Fraction(row.total, row.scale)

    def require_low(self, variable: int, bound: int, reason: object) -> Conflict | None:
        """Adds `variable >= bound`."""
        old, high = self.low[variable], self.high[variable]
        if old is not None and bound <= old:
            return None
        if high is not None and bound > high:
            return [(1, reason), (1, self.high_reason[variable])]
        self._trail.append((variable, True, old, self.low_reason[variable]))
        self.low[variable], self.low_reason[variable] = bound, reason
        if variable not in self._rows and self._value[variable] < bound:
            self._move(variable, bound)
        return None

    def require_high(self, variable: int, bound: int, reason: object) -> Conflict | None:
        """Adds `variable <= bound`."""
        old, low = self.high[variable], self.low[variable]
        if old is not None and bound >= old:
            return None
        if low is not None and bound < low:
            return [(1, reason), (1, self.low_reason[variable])]
        self._trail.append((variable, False, old, self.high_reason[variable]))
        self.high[variable], self.high_reason[variable] = bound, reason
        if variable not in self._rows and self._value[variable] > bound:
            self._move(variable, bound)
        return None

    def _move(self, variable: int, to: int) -> None:
        delta = to - self._value[variable]
        self._value[variable] = to
        for row in self._rows.values():
            coefficient = row.of.get(variable)
            if coefficient is not None:
                row.total += coefficient * delta

    def solve(self) -> Conflict | None:
        """Moves to a point within all bounds, or says which bounds contradict each other. Raises OutOfBudget."""
        while True:
            found = self._violated()
            if found is None:
                return None
            basic, upward = found
            row = self._rows[basic]
            entering = self._entering(row, upward)
            if entering is None:
                return self._conflict(basic, row, upward)
            bound = self.low[basic] if upward else self.high[basic]
            assert bound is not None
            self._pivot(basic, row, entering, bound)

    def _violated(self) -> tuple[int, bool] | None:
        """The first basic variable outside its bounds (Bland's rule: it ends), and whether it has to grow."""
        best: tuple[int, bool] | None = None
        for basic, row in self._rows.items():
            if best is not None and basic > best[0]:
                continue
            low, high = self.low[basic], self.high[basic]
            if low is not None and row.total < low * row.scale:
                best = basic, True
            elif high is not None and row.total > high * row.scale:
                best = basic, False
        return best

    def _entering(self, row: _Row, upward: bool) -> int | None:
        best: int | None = None
        for variable, coefficient in row.of.items():
            if best is not None and variable > best:
                continue
            bound = self.high[variable] if (coefficient > 0) == upward else self.low[variable]
            if bound is None or bound != self._value[variable]:
                best = variable
        return best

    def _conflict(self, basic: int, row: _Row, upward: bool) -> Conflict:
        conflict: Conflict = [(row.scale, self.low_reason[basic] if upward else self.high_reason[basic])]
        for variable, coefficient in row.of.items():
            reasons = self.high_reason if (coefficient > 0) == upward else self.low_reason
            conflict.append((abs(coefficient), reasons[variable]))
        return conflict

    def _pivot(self, basic: int, row: _Row, entering: int, bound: int) -> None:
        """Exchanges a basic variable, which gets the value `bound`, and a nonbasic one."""
        pivot = row.of[entering]
        sign = 1 if pivot > 0 else -1
        new = {variable: -sign * coefficient for variable, coefficient in row.of.items() if variable != entering}
        new[basic] = sign * row.scale
        scale = abs(pivot)
        del self._rows[basic]
        self._value[basic] = bound
        changed = 1
        for other, other_row in self._rows.items():
            factor = other_row.of.get(entering)
            if factor is not None:
                changed += 1
                common = gcd(factor, scale)
                mine, times = scale // common, factor // common
                of = {variable: mine * c for variable, c in other_row.of.items() if variable != entering}
                for variable, coefficient in new.items():
                    of[variable] = of.get(variable, 0) + times * coefficient
                self._rows[other] = self._normal(mine * other_row.scale, of)
        self._rows[entering] = self._normal(scale, new)
        self._budget.spend(1 + changed * len(new) // 4)

    def tight_row(self, variable: int) -> tuple[int, list[tuple[int, int, bool]]] | None:
        """`scale` and `(coefficient, nonbasic variable, whether it is at its low bound)` of a basic variable.

        None for a nonbasic variable, and if one of the others is at no bound.
        """
        row = self._rows.get(variable)
        if row is None:
            return None
        parts: list[tuple[int, int, bool]] = []
        for part, coefficient in row.of.items():
            if self._value[part] == self.low[part]:
                parts.append((coefficient, part, True))
            elif self._value[part] == self.high[part]:
                parts.append((coefficient, part, False))
            else:
                return None
        return row.scale, parts


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
