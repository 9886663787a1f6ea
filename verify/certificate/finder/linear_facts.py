"""Facts over monomials as bounds in a simplex, after linear equations were solved in integers, and the products of
facts and multiples of zeros whose monomials occur in a question; for the search only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import ceil, floor, gcd

from layoutproof.verify.certificate.finder.linear_solving import Budget, Conflict, Lattice, Linear, Simplex
from layoutproof.verify.certificate.finder.refutation_trees import (
    Branch,
    Fact,
    Sum,
    Tree,
    Zero,
    combine,
    decision,
    zeros_alone,
)
from layoutproof.verify.kernel.integers import Case, Question
from layoutproof.verify.kernel.polynomials import Monomial, Poly

Number = Fraction | int
_BOUND_ROUNDS = 4
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

    def implied_bounds(self, facts: Sequence[Fact]) -> list[Poly]:
        """What facts say to be >= 0: a variable less a bound that is not given, by the bounds of others."""
        low, high = (dict(enumerate(bounds[: self.lattice.count])) for bounds in (self.simplex.low, self.simplex.high))
        forms = [(linear, constant) for linear, constant in (self.lattice.affine(f.poly) for f in facts) if linear]
        found: list[Poly] = []
        for _ in range(_BOUND_ROUNDS):
            before = len(found)
            for linear, constant in forms:
                ends = {v: (high if c > 0 else low)[v] for v, c in linear.items()}
                most = {v: linear[v] * end for v, end in ends.items() if end is not None}
                for v, c in linear.items():
                    bounds, sign = (low, 1) if c > 0 else (high, -1)
                    if bounds[v] is None and most.keys() | {v} == linear.keys():
                        rest = constant + sum(most.values()) - most.get(v, 0)
                        bound = -sign * (rest // abs(c))
                        bounds[v] = bound
                        found.append(self.lattice.form({v: sign}) - sign * bound)
            if len(found) == before:
                break
        return found

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


_MOST_PRODUCTS = 600
_MOST_ZEROS = 60
_MOST_PAIRS = 24
_MOST_NEW_COLUMNS = 30
_FAR = 1 << 20


def monomials_of(question: Question) -> list[Monomial]:
    """All monomials of a question and what divides them, by degree."""
    cases = (Case(question.facts, question.zeros), *(case for choice in question.choices for case in choice))
    return _divisors({m for case in cases for poly in (*case.facts, *case.zeros) for m, _ in poly.terms})


def _divisors(monomials: Iterable[Monomial]) -> list[Monomial]:
    found = {part for m in monomials for size in range(1, len(m) + 1) for part in combinations(m, size)}
    return sorted(found, key=lambda m: (len(m), m))


def columns_of(question: Question) -> list[Monomial]:
    """The monomials of a question, and those that two or more multiples of its polynomials have besides them."""
    columns = monomials_of(question)
    cases = (Case(question.facts, question.zeros), *(case for choice in question.choices for case in choice))
    polys = {poly for case in cases for poly in (*case.facts, *case.zeros) if len(poly.terms) > 1 and not is_far(poly)}
    factors = columns if columns and len(columns[-1]) > 1 else []
    most = len(columns) + _MOST_NEW_COLUMNS
    for _ in range(2):
        known = {(), *columns}
        new: Counter[Monomial] = Counter()
        for poly in polys:
            for times in factors:
                monomials = {tuple(sorted(monomial + times)) for monomial, _ in poly.terms} - known
                if len(monomials) == 1:
                    new.update(monomials)
        added = sorted((monomial for monomial, times in new.items() if times > 1), key=lambda m: (-new[m], len(m), m))
        columns = _divisors([*columns, *added[: most - len(columns)]])
    return columns


def is_far(poly: Poly) -> bool:
    """Whether a fact is the bound of a machine type, whose products say nothing of use."""
    return len(poly.terms) == 2 and abs(poly.constant) >= _FAR


class Products:
    """Which facts may be multiplied: those whose product has monomials of the question only."""

    def __init__(self, columns: Sequence[Monomial]) -> None:
        self._columns = frozenset(columns)
        self._partners: dict[Monomial, set[Monomial]] = {column: set() for column in columns}
        for column in columns:
            for size in range(1, len(column)):
                for part in combinations(column, size):
                    rest = list(column)
                    for name in part:
                        rest.remove(name)
                    self._partners[part].add(tuple(rest))
        self.degree = max((len(column) for column in columns), default=0)
        self.names = sorted({name for column in columns if len(column) > 1 for name in column})
        self.factors: list[Fact] = []
        self.found: list[Fact] = []
        self.scaled: list[Fact] = []  # multiples of bounds, which are tried before other products
        self._signs: dict[str, Fact] = {}  # names that are no less than 0, by the facts that say so
        self._seen: set[Poly] = set()

    def sizes(self) -> tuple[int, int, int]:
        """What `shrink` needs to forget what is added from now on."""
        return len(self.factors), len(self.found), len(self.scaled)

    def shrink(self, sizes: tuple[int, int, int]) -> None:
        """Forgets what was added since `sizes` was taken."""
        dropped = set(map(id, self.factors[sizes[0] :]))
        self._signs = {name: fact for name, fact in self._signs.items() if id(fact) not in dropped}
        for facts, size in zip((self.factors, self.found, self.scaled), sizes, strict=True):
            self._seen.difference_update(fact.poly for fact in facts[size:])
            del facts[size:]

    def _allowed(self, poly: Poly) -> set[Monomial] | None:
        allowed: set[Monomial] | None = None
        for monomial, _ in poly.terms:
            if monomial:
                partners = self._partners.get(monomial, set())
                allowed = partners if allowed is None else allowed & partners
                if not allowed:
                    return None
        return allowed

    def add(self, fact: Fact) -> None:
        """Makes the products of a fact with those that were added before, and with itself."""
        if self.degree < 2 or fact.poly in self._seen or fact.poly.is_constant:
            return
        self._seen.add(fact.poly)
        self.factors.append(fact)
        self._scale(fact)
        new = [fact]
        for _ in range(self.degree - 1):
            new = [product for factor in new for product in self._multiply(factor)]

    def digit_pairs(self) -> list[tuple[str, str]]:
        """Quotients, and other names that the same monomials are multiplied with: the quotient may be a digit, and the
        name the number of its values.
        """
        by_rest = {name: self._partners.get((name,), set()) - {()} for name in self.names}
        known = {fact.poly for fact in self.factors}
        limits = [name for name in self.names if name.startswith(("?", "$"))]
        pairs = ((low, high) for low in limits if low.startswith("?") for high in limits if low != high)
        return [
            (low, high)
            for low, high in pairs
            if by_rest[low] & by_rest[high] and Poly.var(high) - Poly.var(low) - 1 not in known
        ][:_MOST_PAIRS]

    def note_sign(self, fact: Fact) -> None:
        """Remembers a fact that says no more than that a name is no less than 0."""
        names = fact.poly.names()
        if len(names) == 1 and fact.poly == Poly.var(name := next(iter(names))):
            self._signs.setdefault(name, fact)

    def _scale(self, fact: Fact) -> None:
        """Makes the multiples of a bound on an index that high digits need: by what the index is multiplied with."""
        self.note_sign(fact)
        names = [monomial[0] for monomial, _ in fact.poly.terms if len(monomial) == 1]
        for rest in sorted({partner for name in names for partner in self._partners.get((name,), ()) if partner}):
            factors = [self._signs.get(name) for name in rest]
            poly = fact.poly * Poly.of({rest: 1})
            if None in factors or poly in self._seen or len(self.scaled) >= _MOST_PRODUCTS // 2:
                continue
            if all(not monomial or monomial in self._columns for monomial, _ in poly.terms):
                self._seen.add(poly)
                given = [factor for factor in factors if factor is not None]
                uses = frozenset().union(fact.uses, *(factor.uses for factor in given))
                self.scaled.append(Fact(poly, uses, (*(fact.factors or (fact,)), *given)))

    def _multiply(self, fact: Fact) -> Iterable[Fact]:
        allowed = self._allowed(fact.poly)
        if allowed is None:
            return
        for other in self.factors:
            if len(self.found) >= _MOST_PRODUCTS:
                return
            if all(not monomial or monomial in allowed for monomial, _ in other.poly.terms):
                poly = fact.poly * other.poly
                if poly in self._seen:
                    continue
                self._seen.add(poly)
                factors = (*(fact.factors or (fact,)), *(other.factors or (other,)))
                product = Fact(poly, fact.uses | other.uses, factors)
                self.found.append(product)
                yield product

    def multiples(self, zeros: Iterable[Zero]) -> list[Zero]:
        """Multiples of zeros by monomials."""
        result: list[Zero] = []
        for zero in zeros:
            allowed = self._allowed(zero.poly)
            if allowed is None or zero.pair is not None:
                continue
            constant = zero.poly.constant
            for times in sorted(allowed):
                if (not constant or times in self._columns) and len(result) < _MOST_ZEROS:
                    poly = Poly.of({times: 1})
                    result.append(Zero(zero.poly * poly, zero.uses, zero, poly))
        return result
