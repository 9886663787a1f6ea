"""Products of facts, and multiples of zeros, whose monomials occur in a question; for the search only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations

from layoutproof.verify.certificate.refutation_trees import Fact, Zero
from layoutproof.verify.kernel.integers import Case, Question
from layoutproof.verify.kernel.polynomials import Monomial, Poly

_MOST_PRODUCTS = 600
_MOST_ZEROS = 60
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
    return len(poly.names()) == 1 and abs(poly.constant) >= _FAR


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
        self._seen: set[Poly] = set()

    def sizes(self) -> tuple[int, int]:
        """What `shrink` needs to forget what is added from now on."""
        return len(self.factors), len(self.found)

    def shrink(self, sizes: tuple[int, int]) -> None:
        """Forgets what was added since `sizes` was taken."""
        self._seen.difference_update(fact.poly for fact in self.factors[sizes[0] :])
        self._seen.difference_update(fact.poly for fact in self.found[sizes[1] :])
        del self.factors[sizes[0] :]
        del self.found[sizes[1] :]

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
        new = [fact]
        for _ in range(self.degree - 1):
            new = [product for factor in new for product in self._multiply(factor)]

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
