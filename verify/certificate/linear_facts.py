"""Facts over monomials as bounds in a simplex, after linear equations were solved in integers; for the search only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, gcd

from layoutproof.verify.certificate.lattice import Lattice, Linear
from layoutproof.verify.certificate.refutation_trees import (
    Branch,
    Fact,
    Sum,
    Tree,
    Zero,
    combine,
    decision,
    zeros_alone,
)
from layoutproof.verify.certificate.simplex import Budget, Conflict, Simplex
from layoutproof.verify.kernel.polynomials import Monomial, Poly

Number = Fraction | int
_LARGE = 10_000  # cuts with larger coefficients cost more than they help


@dataclass(eq=False, slots=True)
class _Bound:
    """The reason of a bound: `fact == scale * (form - bound)`, or a little more, if the bound was rounded."""

    fact: Fact
    scale: int
    form: Linear  # with the sign for which the bound is a lower one
    bound: int
    rounded: bool
    lemma: Fact | None = None


class LinearFacts:
    """A conjunction of facts and zeros. `push` and `pop` bracket facts that are added for a while."""

    def __init__(self, columns: Sequence[Monomial], zeros: Sequence[Zero], budget: Budget) -> None:
        self.zeros = zeros
        self.lattice = Lattice(columns, (zero.poly for zero in zeros))
        self.simplex = Simplex(self.lattice.count, budget)
        self._conflict: Conflict | None = None
        self._shapes: dict[int, Linear] = {}

    def contradiction(self) -> Tree | None:
        """A refutation of the zeros alone, if they have no integer solution."""
        if self.lattice.unsolvable is None:
            return None
        number, form, divisor, constant = self.lattice.unsolvable
        if divisor == 0:
            factors = self.lattice.multipliers(self.zeros[number].poly)
            factors[number] = factors.get(number, Fraction(0)) + 1
            return zeros_alone(((f, self.zeros[i]) for i, f in factors.items()), 1 if constant > 0 else -1)
        bound = -constant // divisor + 1
        left = Fact(form - bound, decision())
        right = Fact(-left.poly - 1, decision())
        sums = [combine([(1, side)], self.lattice, self.zeros) for side in (left, right)]
        return Branch(left, right, sums[0], sums[1], (sums[0].uses - left.uses) | (sums[1].uses - right.uses))

    def push(self) -> None:
        """Remembers the bounds."""
        self.simplex.push()

    def pop(self) -> None:
        """Forgets the facts that were added since the last `push`."""
        self.simplex.pop()
        self._conflict = None

    def add(self, fact: Fact) -> None:
        """Adds a fact."""
        if self._conflict is not None:
            return
        linear, constant = self.lattice.affine(fact.poly)
        if not linear:
            if constant < 0:
                self._conflict = [(1, _Bound(fact, 1, linear, 0, rounded=False))]
            return
        scale = gcd(*linear.values())
        if scale > 1:
            linear = {variable: c // scale for variable, c in linear.items()}
        reason = _Bound(fact, scale, linear, -(constant // scale), constant % scale != 0)
        if linear[min(linear)] > 0:
            variable = self._variable(linear)
            self._conflict = self.simplex.require_low(variable, reason.bound, reason)
        else:
            variable = self._variable({v: -c for v, c in linear.items()})
            self._conflict = self.simplex.require_high(variable, -reason.bound, reason)

    def _variable(self, form: Linear) -> int:
        variable = self.simplex.variable(form)
        self._shapes[variable] = form
        return variable

    def solve(self) -> Sum | None:
        """A refutation of the facts over the rationals, or None, and then there is a point."""
        conflict = self._conflict if self._conflict is not None else self.simplex.solve()
        return None if conflict is None else self._sum(conflict)

    def _sum(self, conflict: Conflict) -> Sum:
        return combine([self._part(factor, reason) for factor, reason in conflict], self.lattice, self.zeros)

    def _part(self, factor: Number, reason: object) -> tuple[Number, Fact]:
        assert isinstance(reason, _Bound)
        if not reason.rounded:
            return Fraction(factor) / reason.scale, reason.fact
        if reason.lemma is None:
            poly = self.lattice.form(reason.form) - reason.bound
            reason.lemma = self.lemma(poly, [(1, reason.fact)], reason.scale)
        return factor, reason.lemma

    def lemma(self, poly: Poly, parts: Iterable[tuple[Number, Fact]], scale: Number = 1) -> Fact:
        """`poly >= 0`: `scale` times its negation together with the parts is a negative constant."""
        negation = Fact(-poly - 1, decision())
        closing = combine([*parts, (scale, negation)], self.lattice, self.zeros)
        return Fact(poly, closing.uses - negation.uses, negation=negation, closing=closing)

    def value(self, linear: Mapping[int, int], constant: int = 0) -> Number:
        """The value of an affine form of variables at the point of the last `solve`."""
        return sum((c * self.simplex.value(variable) for variable, c in linear.items()), start=constant)

    def value_of(self, poly: Poly) -> Number:
        """The value of a polynomial at the point, where its monomials are unknowns of their own."""
        return self.value(*self.lattice.affine(poly))

    def fractional(self) -> list[tuple[int, Fraction]]:
        """The free variables whose value is no integer."""
        values = ((variable, self.simplex.value(variable)) for variable in range(self.lattice.count))
        return [(variable, value) for variable, value in values if isinstance(value, Fraction)]

    def cut(self, variable: int) -> Fact | None:
        """A lemma that excludes the point, at which `variable` is no integer, if its row gives one (Gomory).

        The row says `variable == value + sum of a * t` with integers `t >= 0` that are 0 at the point, so
        `variable - sum of floor(a) * t` is an integer and at least `value`.
        """
        row = self.simplex.tight_row(variable)
        if row is None:
            return None
        scale, tight = row
        bound = ceil(self.simplex.value(variable))
        linear: Linear = {variable: 1}
        constant = -bound
        parts: list[tuple[Number, Fact]] = []
        for coefficient, other, is_low in tight:
            slope = Fraction(coefficient if is_low else -coefficient, scale)
            whole = floor(slope)
            if slope != whole:
                reason = (self.simplex.low_reason if is_low else self.simplex.high_reason)[other]
                parts.append(self._part(slope - whole, reason))
            if whole:
                # t is form - low, or high - form.
                sign = 1 if is_low else -1
                limit = self.simplex.low[other] if is_low else self.simplex.high[other]
                assert limit is not None
                constant += whole * sign * limit
                for v, c in self._shapes.get(other, {other: 1}).items():
                    linear[v] = linear.get(v, 0) - whole * sign * c
        if max(abs(c) for c in linear.values()) > _LARGE:
            return None
        return self.lemma(self.lattice.form(linear) + constant, parts)
