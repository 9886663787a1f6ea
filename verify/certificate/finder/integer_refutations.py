"""Finds refutations of integer questions, in the form that the kernel checks. Nothing here is trusted.

Linear equations are solved in integers first; an exact simplex refutes the facts or gives a point, where a monomial is
one more unknown. Where the point is no answer, one of these excludes it: a product of facts, the cases of a choice, a
cut, or a branch on a fractional unknown or on a factor of a product.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import floor, prod

from layoutproof.verify.certificate.finder.linear_facts import LinearFacts, Products, columns_of, is_far, monomials_of
from layoutproof.verify.certificate.finder.linear_solving import Budget, OutOfBudget
from layoutproof.verify.certificate.finder.refutation_trees import (
    Branch,
    Fact,
    Split,
    Sum,
    Tree,
    Zero,
    decision,
    proof_of,
)
from layoutproof.verify.kernel.integers import Case, Question, check_refutation
from layoutproof.verify.kernel.polynomials import Monomial, Poly

_BUDGET = 300_000
_MAX_DEPTH = 60
_ROUNDS = 12
_PER_ROUND = 12


def find_refutation(question: Question, budget: int = _BUDGET) -> list[object] | None:
    """A proof that `check_refutation` accepts, or None: none was found in `budget` steps, or there is none."""
    facts = [Fact(poly) for poly in question.facts]
    zeros = [Zero(poly) for poly in question.zeros]
    try:
        tree = _Search(question, budget).refute(facts, zeros, 0)
    except (OutOfBudget, _HasPoint):
        return None
    if tree is None:
        return None
    proof = proof_of(tree, facts, zeros)
    check_refutation(question, proof)
    return proof


class _HasPoint(Exception):
    """Some integers satisfy the question."""


class _State:
    """The facts and zeros on the path to a node, in a simplex that its branches share."""

    def __init__(
        self, columns: Sequence[Monomial], facts: Sequence[Fact], zeros: Sequence[Zero], budget: Budget
    ) -> None:
        self.products = Products(columns)
        self.given_facts = list(facts)
        self.given_zeros = list(zeros)
        self.positive: set[str] = set()  # names that are no less than 0
        self.split: list[int] = []  # choices that were split on the path
        multiples = [*self.products.multiples(zeros), *_pairs(facts)]
        self.linear = LinearFacts(columns, [*zeros, *multiples], budget)
        self._budget = budget
        budget.spend(50 + len(columns) * (len(facts) + len(zeros) + len(multiples)) // 4)

    def start(self) -> Tree | None:
        """Adds the facts; a refutation if they are contradictory already."""
        contradiction = self.linear.contradiction()
        if contradiction is not None:
            return contradiction
        for fact in self.given_facts:
            self.linear.add(fact)
        refutation = self.linear.solve()
        if refutation is not None:
            return refutation
        refutation = self._implied_bounds()
        if refutation is not None or self.products.degree < 2:
            return refutation
        for fact in self.given_facts:
            self.products.note_sign(fact)
        for fact in self.given_facts:
            if not is_far(fact.poly):
                self.products.add(fact)
        # Some names are known to be positive only by a product with another one.
        open_names = self.products.names
        while open_names:
            found = [name for name in open_names if self._bound(name)]
            open_names = [name for name in open_names if name not in found] if found else []
        return None

    def _implied_bounds(self) -> Sum | None:
        """Adds bounds of variables that the bounds of others imply; a refutation if one follows."""
        for poly in self.linear.implied_bounds(self.given_facts):
            lemma = self.try_lemma(poly, with_products=False)
            if lemma is not None:
                self.linear.add(lemma)
        return self.linear.solve()

    def _bound(self, name: str) -> bool:
        """Lemmas that a name is positive, or at least not negative: factors of many products."""
        for least in (1, 0):
            lemma = self.try_lemma(Poly.var(name) - least, with_products=False)
            if lemma is None and (name.startswith("$") or (least == 0 and name not in self.positive)):
                lemma = self.try_lemma(Poly.var(name) - least)
            if lemma is not None:
                self.add(lemma)
                self.positive.add(name)
        return name in self.positive

    def add(self, fact: Fact) -> None:
        """Adds a fact, and its products."""
        self.linear.add(fact)
        self.products.add(fact)

    def try_lemma(self, poly: Poly, *, with_products: bool = True) -> Fact | None:
        """`poly >= 0` as a lemma, if facts, and their products if those are to be tried, say so over the rationals."""
        negation = Fact(-poly - 1, decision())
        sizes = self.products.sizes()
        self.linear.push()
        if with_products:
            self.add(negation)
        else:
            self.linear.add(negation)
        closing = self.relaxed() if with_products else self.linear.solve()
        self.linear.pop()
        self.products.shrink(sizes)
        if closing is None:
            return None
        return Fact(poly, closing.uses - negation.uses, negation=negation, closing=closing)

    def relaxed(self, cuts: int = 0) -> Sum | None:
        """A refutation without branches, by products and some rounds of cuts."""
        for _ in range(_ROUNDS):
            refutation = self.linear.solve()
            if refutation is not None:
                return refutation
            if self._add_violated():
                continue
            if cuts == 0 or not self._cut():
                return None
            cuts -= 1
        return self.linear.solve()

    def _add_violated(self) -> bool:
        """Adds the products of facts that are negative at the point; whether there were some."""
        for products in (self.products.scaled, self.products.found):
            self._budget.spend(len(products))
            values = [(self.linear.value_of(product.poly), product) for product in products]
            violated = sorted((value, product.order, product) for value, product in values if value < 0)
            for _, _, product in violated[:_PER_ROUND]:
                self.linear.add(product)
            if violated:
                return True
        return False

    def _cut(self) -> bool:
        lemmas = [self.linear.cut(variable) for variable, _ in self.linear.fractional()[:3]]
        for lemma in lemmas:
            if lemma is not None:
                self.linear.add(lemma)
        return any(lemma is not None for lemma in lemmas)

    def add_digits(self, forms: Sequence[Poly]) -> Sum | None:
        """Adds those forms as lemmas that are >= 0, each of which may help with the next; a refutation if one follows.

        A form that is -1 or less at some point that the facts allow is no lemma.
        """
        for low, high in self.products.digit_pairs():
            lemma = self.try_lemma(Poly.var(high) - Poly.var(low) - 1, with_products=False)
            if lemma is not None:
                self.add(lemma)
        rest = list(forms)
        while rest:
            added = False
            for form in list(rest):
                refutation = self.relaxed()
                if refutation is not None:
                    return refutation
                lemma = self.try_lemma(form) if self.linear.value_of(form) > -1 else None
                if lemma is not None:
                    self.add(lemma)
                    self.given_facts.append(lemma)
                    rest.remove(form)
                    added = True
            if not added:
                break
        return self.relaxed()


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
        self._columns = columns_of(question)
        self._budget = Budget(budget)
        self._factored = list(_factored(question))
        self._digits = _digits(question)

    def refute(self, facts: Sequence[Fact], zeros: Sequence[Zero], depth: int) -> Tree | None:
        """A refutation of facts and zeros with the choices of the question, or None if one was not found."""
        state = _State(self._columns, facts, zeros, self._budget)
        tree = state.start() or state.relaxed()
        if tree is None:
            tree = state.add_digits(self._digits) or self._node(state, depth)
        return tree

    def _node(self, state: _State, depth: int) -> Tree | None:
        self._budget.spend(10 + len(state.given_facts))
        if depth > _MAX_DEPTH:
            return None
        refutation = state.relaxed(4 if depth == 0 else 1)
        if refutation is not None:
            return refutation
        self._check_point(state)
        choice = self._open_choice(state)
        if choice is not None:
            return self._split(state, choice, depth)
        poly = self._fractional(state)
        if poly is None:
            tried, poly = self._factor(state)
            unsplit = [number for number in range(len(self._question.choices)) if number not in state.split]
            if tried and unsplit:
                return self._split(state, unsplit[0], depth)
        return None if poly is None else self._branch(state, poly, depth)

    def _check_point(self, state: _State) -> None:
        """Raises _HasPoint if the names, rounded, satisfy the question."""
        values = {name: floor(state.linear.value_of(Poly.var(name))) for (name, *more) in self._columns if not more}
        given = Case(self._question.facts, self._question.zeros)
        if _holds(given, values) and all(any(_holds(c, values) for c in cases) for cases in self._question.choices):
            raise _HasPoint

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
        state.split.append(choice)
        for case in self._question.choices[choice]:
            taken = decision()
            facts = [Fact(poly, taken) for poly in case.facts]
            zeros = [Zero(poly, taken) for poly in case.zeros]
            tree = self._under(state, facts, zeros, depth + 1)
            if tree is None or not tree.uses & taken:
                # Without the case it is a refutation of the whole node.
                state.split.pop()
                return tree
            uses |= tree.uses - taken
            cases.append((facts, zeros, tree))
        state.split.pop()
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
                return self.refute(state.given_facts, [*state.given_zeros, *zeros], depth)
            sizes = state.products.sizes()
            state.linear.push()
            for fact in facts:
                state.add(fact)
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

    def _factor(self, state: _State) -> tuple[bool, Poly | None]:
        """A branch on a form whose product with a monomial has another value than at the point.

        Products with the form exclude the point on one side, if the monomial is known to be positive; the form
        excludes it on the other side. Forms of several names, such as a difference of two indices, come first. Also
        whether it is unlikely to help.
        """
        best: tuple[tuple[bool, int, bool, Fraction, int], Poly] | None = None
        value_of = state.linear.value_of
        for number, (times, form, product) in enumerate(self._factored):
            value = value_of(form)
            difference = value_of(product) - value * value_of(times)
            if difference == 0:
                continue
            poly = form - floor(value) - 1 if difference > 0 else form - floor(value)
            if self._is_known(state, poly) or self._is_known(state, -poly - 1):
                continue
            tried = sum((fact.poly - poly).is_constant for fact in state.given_facts if fact.uses)
            rank = (
                not state.positive.issuperset(times.names()),
                tried,
                len(form.names()) == 1,
                abs(Fraction(value)),
                number,
            )
            if best is None or rank < best[0]:
                best = rank, poly
        if best is None:
            return True, self._halved(state)
        return best[0][:3] != (False, 0, False), best[1]

    def _halved(self, state: _State) -> Poly | None:
        """A branch in the middle of the smallest range of a name that is multiplied."""
        best: tuple[int, Poly] | None = None
        for name in state.products.names:
            linear, constant = state.linear.lattice.affine(Poly.var(name))
            ((variable, scale),) = linear.items() if len(linear) == 1 else ((0, 0),)
            low, high = state.linear.simplex.low[variable], state.linear.simplex.high[variable]
            if abs(scale) == 1 and low is not None and high is not None and low < high:
                if best is None or high - low < best[0]:
                    best = high - low, Poly.var(name) - constant - scale * ((low + high) // 2) - 1
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


def _digits(question: Question) -> list[Poly]:
    """What may be >= 0 since a multiple of it plus something small is: the high digits of sums, the highest first.

    Where two sums are equal, so are their high digits.
    """
    found: dict[Poly, None] = {}
    for poly in (*question.zeros, *(-zero for zero in question.zeros), *question.facts):
        for times in reversed(((), *monomials_of(Question((poly,))))):
            quotient = _quotient(poly, times)
            for scale in sorted({abs(c) for _, c in quotient.terms}, reverse=True):
                exact = Poly.of({m: c // scale for m, c in quotient.terms if m and c % scale == 0})
                # Where a digit is a remainder, its quotient has another multiple near by: 1248 * (i - 17 * q) + 96 * q.
                near = Poly.of({m: (2 * c + scale) // (2 * scale) for m, c in quotient.terms if m})
                for form in (exact, near):
                    if len(form.terms) > 1 and (times or scale > 1):
                        found[form] = None
    return list(found)


def _holds(case: Case, values: Mapping[str, int]) -> bool:
    return all(_value(p, values) >= 0 for p in case.facts) and all(_value(p, values) == 0 for p in case.zeros)


def _value(poly: Poly, values: Mapping[str, int]) -> int:
    return sum(c * prod(values[name] for name in monomial) for monomial, c in poly.terms)
