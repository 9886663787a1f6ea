"""Random questions over small boxes, the points of the boxes, and damaged proofs."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import product
from random import Random
from typing import cast

from layoutproof.verify.kernel.integers import Case, Question
from layoutproof.verify.kernel.polynomials import Poly

NAMES = ("a", "b", "c")


def random_poly(random: Random, products: bool) -> Poly:
    """A sum of few terms, of degree 2 at most, with small coefficients."""
    total = Poly.const(random.randint(-4, 4))
    for name in random.sample(NAMES, random.randint(1, 3)):
        term = Poly.var(name) * random.choice((-6, -4, -3, -2, -1, -1, 1, 1, 2, 3, 4, 6))
        if products and random.random() < 0.3:
            term *= Poly.var(random.choice(NAMES))
        total += term
    return total


def _case(random: Random, products: bool) -> Case:
    polys = [random_poly(random, products) for _ in range(random.randint(1, 2))]
    return Case((), tuple(polys[:1])) if random.random() < 0.3 else Case(tuple(polys))


def random_question(random: Random, radius: int = 3, products: bool = False) -> Question:
    """A question whose names are between `-radius` and `radius`, or 0 and `radius`, as facts of it say."""
    facts: list[Poly] = []
    for name in NAMES:
        facts += [Poly.var(name) + random.choice((0, radius)), radius - Poly.var(name)]
    facts += [random_poly(random, products) for _ in range(random.randint(0, 3))]
    zeros = [random_poly(random, products) for _ in range(random.randint(0, 2))]
    choices = [tuple(_case(random, products) for _ in range(random.randint(1, 3))) for _ in range(random.randint(0, 2))]
    return Question(tuple(facts), tuple(zeros), tuple(choices))


def value(poly: Poly, point: dict[str, int]) -> int:
    """The value of a polynomial at a point."""
    total = 0
    for monomial, coefficient in poly.terms:
        for name in monomial:
            coefficient *= point[name]
        total += coefficient
    return total


def _holds(case: Case, point: dict[str, int]) -> bool:
    return all(value(p, point) >= 0 for p in case.facts) and all(value(p, point) == 0 for p in case.zeros)


def has_point(question: Question, radius: int = 3) -> bool:
    """Whether a point of the box around 0 satisfies the question: brute force."""
    given = Case(question.facts, question.zeros)
    for values in product(range(-radius, radius + 1), repeat=len(NAMES)):
        point = dict(zip(NAMES, values, strict=True))
        if _holds(given, point) and all(any(_holds(case, point) for case in cases) for cases in question.choices):
            return True
    return False


def damaged(data: object) -> Iterator[object]:
    """Copies of a proof, each with one number, name or list in it changed."""
    if isinstance(data, int):
        yield from (data + 1, data - 1, -data, 0, True, None, "1", [data])
    elif isinstance(data, str):
        yield from ("branch", "sum", "split", "a", "", 0, None)
    elif isinstance(data, list):
        items = cast("list[object]", data)
        for i, item in enumerate(items):
            yield [*items[:i], *items[i + 1 :]]
            yield [*items[:i], copy.deepcopy(item), *items[i:]]
            for other in damaged(item):
                yield [*items[:i], other, *items[i + 1 :]]
        yield from (None, {}, [], items[::-1])
