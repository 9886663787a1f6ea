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

from collections.abc import Sequence
from dataclasses import dataclass

from layoutproof.verify.kernel.polynomials import MAX_DEGREE, MAX_TERMS, Monomial, Poly, integer_of, list_of, pair_of
from layoutproof.verify.kernel.rejected import Rejected

MAX_STEPS = 5_000_000  # a bound of the work that one proof may ask for: nodes, facts copied, terms multiplied


@dataclass(frozen=True, slots=True)
class Case:
    """A conjunction: each of `facts` is >= 0 and each of `zeros` is 0."""

    facts: tuple[Poly, ...] = ()
    zeros: tuple[Poly, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """Whether integers exist for which the facts and zeros hold, and at least one case of each choice."""

    facts: tuple[Poly, ...] = ()
    zeros: tuple[Poly, ...] = ()
    choices: tuple[tuple[Case, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class _Goal:
    """Facts and zeros that `proof` has to show contradictory."""

    proof: object
    facts: tuple[Poly, ...]
    zeros: tuple[Poly, ...]


class _Steps:
    """Counts work, so that no proof keeps the kernel busy for long."""

    def __init__(self) -> None:
        self._left = MAX_STEPS

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise Rejected("the proof is too large")


def check_refutation(question: Question, proof: object) -> None:
    """Returns only if `proof` shows that no integers satisfy `question`; else raises Rejected."""
    steps = _Steps()
    goals = [_Goal(proof, question.facts, question.zeros)]
    # A list of goals instead of recursion: a deep proof cannot exhaust the stack.
    while goals:
        goal = goals.pop()
        steps.spend(1 + len(goal.facts) + len(goal.zeros))
        kind, *parts = list_of(goal.proof, 4, "a node of the proof") or [None]
        if kind == "sum" and len(parts) == 2:
            _check_sum(goal, parts[0], parts[1], steps)
        elif kind == "branch" and len(parts) == 3:
            goals.extend(_branch(goal, *parts))
        elif kind == "split" and len(parts) == 2:
            goals.extend(_split(goal, question.choices, parts[0], parts[1]))
        else:
            raise Rejected("a node of the proof is none of sum, branch and split")


def _branch(goal: _Goal, poly_json: object, left: object, right: object) -> tuple[_Goal, _Goal]:
    poly = Poly.from_json(poly_json)
    return (
        _Goal(left, (*goal.facts, poly), goal.zeros),
        _Goal(right, (*goal.facts, -poly - 1), goal.zeros),
    )


def _split(goal: _Goal, choices: Sequence[tuple[Case, ...]], number: object, proofs_json: object) -> list[_Goal]:
    cases = choices[_number(number, len(choices), "a choice")]
    proofs = list_of(proofs_json, len(cases), "the list of proofs of a split")
    if len(proofs) != len(cases):
        raise Rejected("a split does not have one proof for each case")
    return [
        _Goal(proof, goal.facts + case.facts, goal.zeros + case.zeros)
        for proof, case in zip(proofs, cases, strict=True)
    ]


def _check_sum(goal: _Goal, terms: object, zero_terms: object, steps: _Steps) -> None:
    total: dict[Monomial, int] = {}
    for term in list_of(terms, MAX_TERMS, "the terms of a sum"):
        factor_json, numbers = pair_of(term, "a term of a sum")
        factor = integer_of(factor_json, "the factor of a term")
        if factor <= 0:
            raise Rejected("the factor of a term is not positive")
        _add(total, _product(goal.facts, numbers, steps), factor, steps)
    for term in list_of(zero_terms, MAX_TERMS, "the zero terms of a sum"):
        poly_json, number = pair_of(term, "a zero term of a sum")
        zero = goal.zeros[_number(number, len(goal.zeros), "a zero")]
        _add(total, _times(Poly.from_json(poly_json), zero, steps), 1, steps)
    constant = total.pop((), 0)
    if constant >= 0 or any(total.values()):
        raise Rejected("a sum is not a negative constant")


def _product(facts: tuple[Poly, ...], numbers_json: object, steps: _Steps) -> Poly:
    numbers = list_of(numbers_json, MAX_DEGREE, "the facts of a term")
    if not numbers:
        raise Rejected("a term of a sum names no fact")
    product = Poly.const(1)
    for number in numbers:
        product = _times(product, facts[_number(number, len(facts), "a fact")], steps)
    return product


def _times(left: Poly, right: Poly, steps: _Steps) -> Poly:
    steps.spend(len(left.terms) * len(right.terms))
    return left * right


def _add(total: dict[Monomial, int], poly: Poly, factor: int, steps: _Steps) -> None:
    steps.spend(len(poly.terms))
    for monomial, coefficient in poly.terms:
        total[monomial] = total.get(monomial, 0) + factor * coefficient


def _number(data: object, count: int, what: str) -> int:
    number = integer_of(data, f"the number of {what}")
    if not 0 <= number < count:
        raise Rejected(f"the number of {what} is out of range")
    return number
