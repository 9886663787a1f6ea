"""Decides whether a proof shows that no integers satisfy a question: the one rule of arithmetic in the kernel.

A question is a conjunction of facts `poly >= 0`, zeros `poly == 0` and choices, of each of which at least one case
holds, over names that stand for integers. A proof is plain data, one of

    ["sum", [[k, [fact numbers]], ...], [[poly, zero number], ...]]
    ["branch", poly, left, right]
    ["split", choice number, [a proof for each case]]

* sum: products of facts are >= 0, and so is their sum with factors k > 0; multiples of zeros are 0. If all of it
  together is a negative constant, the facts and zeros contradict each other.
* branch: an integer polynomial is >= 0 (a further fact on the left) or <= -1 (`-poly - 1 >= 0`, on the right).
* split: one of the cases holds. Each has its proof, in which the facts and zeros of the case are known too.

Facts and zeros are numbered from 0: those of the question, then those that the path added, in that order.
"""

from __future__ import annotations

from dataclasses import dataclass

from layoutproof.verify.kernel.polynomials import MAX_DEGREE, MAX_TERMS, Monomial, Poly, integer_of, list_of, pair_of
from layoutproof.verify.kernel.rejected import Rejected

MAX_STEPS = 5_000_000  # a bound of the work that one proof may ask for: nodes, facts copied, terms multiplied


@dataclass(frozen=True, slots=True)
class Case:
    """A conjunction: each of `facts` is >= 0 and each of `zeros` is 0."""

    facts: tuple[Poly, ...] = ()
    zeros: tuple[Poly, ...] = ()

    def __and__(self, other: Case) -> Case:
        return Case(self.facts + other.facts, self.zeros + other.zeros)


@dataclass(frozen=True, slots=True)
class Question:
    """Whether integers exist for which the facts and zeros hold, and at least one case of each choice."""

    facts: tuple[Poly, ...] = ()
    zeros: tuple[Poly, ...] = ()
    choices: tuple[tuple[Case, ...], ...] = ()


def check_refutation(question: Question, proof: object) -> None:
    """Returns only if `proof` shows that no integers satisfy `question`; else raises Rejected."""
    check = _Check(question.choices)
    goals = [(proof, Case(question.facts, question.zeros))]
    while goals:  # A list of goals instead of recursion: a deep proof cannot exhaust the stack.
        goals += check.node(*goals.pop())


class _Check:
    """Checks single nodes of a proof, and counts work, so that no proof keeps the kernel busy for long."""

    def __init__(self, choices: tuple[tuple[Case, ...], ...]) -> None:
        self._choices, self._left = choices, MAX_STEPS

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise Rejected("the proof is too large")

    def node(self, proof: object, known: Case) -> list[tuple[object, Case]]:
        """The proofs that a node leaves to be checked, and what is known in each."""
        self._spend(1 + len(known.facts) + len(known.zeros))
        match list_of(proof, 4, "a node of the proof"):
            case ["sum", terms, zero_terms]:
                self._sum(known, terms, zero_terms)
                return []
            case ["branch", poly_json, left, right]:
                poly = Poly.from_json(poly_json)
                return [(left, known & Case((poly,))), (right, known & Case((-poly - 1,)))]
            case ["split", number, proofs_json]:
                cases = self._choices[_number(number, len(self._choices), "a choice")]
                proofs = list_of(proofs_json, len(cases), "the list of proofs of a split")
                if len(proofs) != len(cases):
                    raise Rejected("a split does not have one proof for each case")
                return [(each, known & case) for each, case in zip(proofs, cases, strict=True)]
            case _:
                raise Rejected("a node of the proof is none of sum, branch and split")

    def _sum(self, known: Case, terms: object, zero_terms: object) -> None:
        total: dict[Monomial, int] = {}
        for term in list_of(terms, MAX_TERMS, "the terms of a sum"):
            factor_json, numbers = pair_of(term, "a term of a sum")
            factor = integer_of(factor_json, "the factor of a term")
            if factor <= 0:
                raise Rejected("the factor of a term is not positive")
            self._add(total, self._product(known.facts, numbers), factor)
        for term in list_of(zero_terms, MAX_TERMS, "the zero terms of a sum"):
            poly_json, number = pair_of(term, "a zero term of a sum")
            zero = known.zeros[_number(number, len(known.zeros), "a zero")]
            self._add(total, self._times(Poly.from_json(poly_json), zero), 1)
        constant = total.pop((), 0)
        if constant >= 0 or any(total.values()):
            raise Rejected("a sum is not a negative constant")

    def _product(self, facts: tuple[Poly, ...], numbers_json: object) -> Poly:
        numbers = list_of(numbers_json, MAX_DEGREE, "the facts of a term")
        if not numbers:
            raise Rejected("a term of a sum names no fact")
        product = Poly.const(1)
        for number in numbers:
            product = self._times(product, facts[_number(number, len(facts), "a fact")])
        return product

    def _times(self, left: Poly, right: Poly) -> Poly:
        self._spend(len(left.terms) * len(right.terms))
        return left * right

    def _add(self, total: dict[Monomial, int], poly: Poly, factor: int) -> None:
        self._spend(len(poly.terms))
        for monomial, coefficient in poly.terms:
            total[monomial] = total.get(monomial, 0) + factor * coefficient


def _number(data: object, count: int, what: str) -> int:
    number = integer_of(data, f"the number of {what}")
    if not 0 <= number < count:
        raise Rejected(f"the number of {what} is out of range")
    return number
