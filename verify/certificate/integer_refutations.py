"""Finds refutations of integer questions, in the form that the kernel checks. Nothing here is trusted.

Linear equations are solved in integers first; an exact simplex refutes the facts or gives a point, where a monomial is
one more unknown. Where the point is no answer, one of these excludes it: a product of facts, the cases of a choice, a
cut, or a branch on a fractional unknown or on a factor of a product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import floor

from layoutproof.verify.certificate.linear_facts import LinearFacts
from layoutproof.verify.certificate.products import Products, monomials_of
from layoutproof.verify.certificate.refutation_trees import Branch, Fact, Split, Sum, Tree, Zero, decision, proof_of
from layoutproof.verify.certificate.simplex import OutOfBudget
from layoutproof.verify.kernel.integers import Case, Question, check_refutation
from layoutproof.verify.kernel.polynomials import Monomial, Poly

_BUDGET = 4000
_MAX_DEPTH = 60
_ROUNDS = 12
_PER_ROUND = 12


def find_refutation(question: Question, budget: int = _BUDGET) -> list[object] | None:
    """A proof that `check_refutation` accepts, or None: within `budget` (pivots and nodes) none was found."""
    facts = [Fact(poly) for poly in question.facts]
    zeros = [Zero(poly) for poly in question.zeros]
    try:
        tree = _Search(question, budget).refute(facts, zeros, 0)
    except OutOfBudget:
        return None
    if tree is None:
        return None
    proof = proof_of(tree, facts, zeros)
    check_refutation(question, proof)
    return proof


class _State:
    """The facts and zeros on the path to a node, in a simplex that its branches share."""

    def __init__(self, columns: Sequence[Monomial], facts: Sequence[Fact], zeros: Sequence[Zero], pivots: int) -> None:
        self.products = Products(columns)
        self.given_facts = list(facts)
        self.given_zeros = list(zeros)
        self.positive: set[str] = set()  # names that are no less than 0
        multiples = [*self.products.multiples(zeros), *_pairs(facts)]
        self.linear = LinearFacts(columns, [*zeros, *multiples], pivots)

    def start(self) -> Tree | None:
        """Adds the facts; a refutation if they are contradictory already."""
        contradiction = self.linear.contradiction()
        if contradiction is not None:
            return contradiction
        for fact in self.given_facts:
            self.linear.add(fact)
        refutation = self.linear.solve()
        if refutation is not None or self.products.degree < 2:
            return refutation
        for name in self.products.names:
            self._bound(name)
        for fact in self.given_facts:
            self.products.add(fact)
        return None

    def _bound(self, name: str) -> None:
        """Lemmas that a name is positive, or at least not negative: factors of many products."""
        for least in (1, 0):
            lemma = self.linear.try_lemma(Poly.var(name) - least)
            if lemma is not None:
                self.linear.add(lemma)
                self.products.add(lemma)
                self.positive.add(name)

    def add_violated(self) -> bool:
        """Adds the products of facts that are negative at the point; whether there were some."""
        values = [(self.linear.value_of(product.poly), product) for product in self.products.found]
        violated = sorted((value, product.order, product) for value, product in values if value < 0)
        for _, _, product in violated[:_PER_ROUND]:
            self.linear.add(product)
        return bool(violated)


def _pairs(facts: Sequence[Fact]) -> list[Zero]:
    """The zeros that two facts say together."""
    by_poly = {fact.poly: fact for fact in reversed(facts)}
    pairs = [(fact, by_poly[-fact.poly]) for fact in facts if -fact.poly in by_poly and by_poly[fact.poly] is fact]
    return [
        Zero(fact.poly, fact.uses | other.uses, pair=(fact, other)) for fact, other in pairs if fact.order < other.order
    ]


class _Search:
    def __init__(self, question: Question, budget: int) -> None:
        self._question = question
        self._columns = monomials_of(question)
        self._budget = budget
        self._factored = list(_factored(question))

    def refute(self, facts: Sequence[Fact], zeros: Sequence[Zero], depth: int) -> Tree | None:
        """A refutation of facts and zeros with the choices of the question, or None if one was not found."""
        state = _State(self._columns, facts, zeros, self._budget)
        tree = state.start()
        if tree is None:
            tree = self._node(state, depth)
        self._budget = state.linear.simplex.pivots
        return tree

    def _node(self, state: _State, depth: int) -> Tree | None:
        state.linear.simplex.pivots -= 1
        if depth > _MAX_DEPTH:
            return None
        refutation = self._relaxed(state, depth)
        if refutation is not None:
            return refutation
        choice = self._open_choice(state)
        if choice is not None:
            return self._split(state, choice, depth)
        poly = self._fractional(state) or self._factor(state)
        return None if poly is None else self._branch(state, poly, depth)

    def _relaxed(self, state: _State, depth: int) -> Sum | None:
        """A refutation without further branches, by products and cuts."""
        cuts = 4 if depth == 0 else 1
        for _ in range(_ROUNDS):
            refutation = state.linear.solve()
            if refutation is not None:
                return refutation
            if state.add_violated():
                continue
            if cuts == 0 or not self._cut(state):
                return None
            cuts -= 1
        return state.linear.solve()

    def _cut(self, state: _State) -> bool:
        lemmas = [state.linear.cut(variable) for variable, _ in state.linear.fractional()[:3]]
        for lemma in lemmas:
            if lemma is not None:
                state.linear.add(lemma)
        return any(lemma is not None for lemma in lemmas)

    def _open_choice(self, state: _State) -> int | None:
        """The choice with the fewest cases among those with no case that holds at the point."""
        value = state.linear.value_of
        still_open = [
            number
            for number, cases in enumerate(self._question.choices)
            if not any(
                all(value(p) >= 0 for p in case.facts) and all(value(p) == 0 for p in case.zeros) for case in cases
            )
        ]
        return min(still_open, key=lambda number: len(self._question.choices[number]), default=None)

    def _split(self, state: _State, choice: int, depth: int) -> Tree | None:
        cases: list[tuple[Sequence[Fact], Sequence[Zero], Tree]] = []
        uses: frozenset[int] = frozenset()
        for case in self._question.choices[choice]:
            taken = decision()
            facts = [Fact(poly, taken) for poly in case.facts]
            zeros = [Zero(poly, taken) for poly in case.zeros]
            tree = self._under(state, facts, zeros, depth + 1)
            if tree is None or not tree.uses & taken:
                # Without the case it is a refutation of the whole node.
                return tree
            uses |= tree.uses - taken
            cases.append((facts, zeros, tree))
        return Split(choice, cases, uses)

    def _branch(self, state: _State, poly: Poly, depth: int) -> Tree | None:
        sides: list[tuple[Fact, Tree]] = []
        for side in (poly, -poly - 1):
            taken = decision()
            fact = Fact(side, taken)
            tree = self._under(state, [fact], [], depth + 1)
            if tree is None or not tree.uses & taken:
                return tree
            sides.append((fact, tree))
        (left_fact, left), (right_fact, right) = sides
        uses = (left.uses - left_fact.uses) | (right.uses - right_fact.uses)
        return Branch(left_fact, right_fact, left, right, uses)

    def _under(self, state: _State, facts: list[Fact], zeros: list[Zero], depth: int) -> Tree | None:
        """A refutation of the state with further facts and zeros; equations are solved anew."""
        given = len(state.given_facts)
        state.given_facts.extend(facts)
        try:
            if zeros or len(_pairs(state.given_facts)) > len(_pairs(state.given_facts[:given])):
                self._budget = state.linear.simplex.pivots
                tree = self.refute(state.given_facts, [*state.given_zeros, *zeros], depth)
                state.linear.simplex.pivots = self._budget
                return tree
            sizes = state.products.sizes()
            state.linear.push()
            for fact in facts:
                state.linear.add(fact)
                state.products.add(fact)
            tree = self._node(state, depth)
            state.linear.pop()
            state.products.shrink(sizes)
            return tree
        finally:
            del state.given_facts[given:]

    def _fractional(self, state: _State) -> Poly | None:
        """A branch on the fractional variable with the smallest range: `x >= its value, rounded up`."""
        simplex = state.linear.simplex

        def span(variable: int) -> tuple[int, int]:
            low, high = simplex.low[variable], simplex.high[variable]
            return (0, high - low) if low is not None and high is not None else (1, 0)

        fractional = state.linear.fractional()
        if not fractional:
            return None
        variable, value = min(fractional, key=lambda item: (span(item[0]), item[0]))
        return state.linear.lattice.form({variable: 1}) - (floor(value) + 1)

    def _factor(self, state: _State) -> Poly | None:
        """A branch on a form whose product with a monomial has another value than at the point.

        Products with the form exclude the point on one side, if the monomial is known to be positive; the form
        excludes it on the other side. Forms of several names, such as a difference of two indices, come first.
        """
        best: tuple[tuple[bool, bool, Fraction, int], Poly] | None = None
        value_of = state.linear.value_of
        for number, (times, form, product) in enumerate(self._factored):
            value = value_of(form)
            difference = value_of(product) - value * value_of(times)
            if difference == 0:
                continue
            poly = form - floor(value) - 1 if difference > 0 else form - floor(value)
            if self._is_known(state, poly) or self._is_known(state, -poly - 1):
                continue
            rank = not state.positive.issuperset(times.names()), len(form.names()) == 1, abs(Fraction(value)), number
            if best is None or rank < best[0]:
                best = rank, poly
        return None if best is None else best[1]

    def _is_known(self, state: _State, poly: Poly) -> bool:
        return any(fact.poly == poly for fact in state.given_facts)


def _factored(question: Question) -> Iterator[tuple[Poly, Poly, Poly]]:
    """Monomials, the forms that they are multiplied with in a question, and the products."""
    cases = (Case(question.facts, question.zeros), *(case for choice in question.choices for case in choice))
    seen: set[tuple[Poly, Poly]] = set()
    for poly in (poly for case in cases for poly in (*case.zeros, *case.facts)):
        for times in monomials_of(Question((poly,))):
            form = _quotient(poly, times)
            key = Poly.of({times: 1}), form
            if form.is_constant or key in seen:
                continue
            seen.add(key)
            yield *key, key[0] * form


def _quotient(poly: Poly, times: Monomial) -> Poly:
    """The sum of the terms that a monomial divides, divided by it; terms of degree 1 only."""
    total: dict[Monomial, int] = {}
    for monomial, coefficient in poly.terms:
        rest = list(monomial)
        for name in times:
            if name not in rest:
                break
            rest.remove(name)
        else:
            total[tuple(rest)] = total.get(tuple(rest), 0) + coefficient
    return Poly.of(total)
