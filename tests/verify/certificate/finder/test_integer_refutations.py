"""Refutations are found for the questions that layouts and schedules ask, and for nearly all small ones."""

from __future__ import annotations

from random import Random

import pytest
from tests.verify.kernel.questions import has_point, random_question

from layoutproof.verify.certificate.finder.integer_refutations import find_refutation
from layoutproof.verify.kernel.integers import Case, Question, check_refutation
from layoutproof.verify.kernel.polynomials import Poly

a, b, c, i, j, k, m, n, p, q, r, s, t, x, y = (Poly.var(name) for name in "abcijkmnpqrstxy")


def within(poly: Poly, extent: Poly | int) -> tuple[Poly, Poly]:
    """`0 <= poly < extent`."""
    return poly, extent - poly - 1


def differ(*pairs: tuple[Poly, Poly]) -> tuple[Case, ...]:
    """Some pair is of two different values."""
    return tuple(Case((left - right - 1,)) for pair in pairs for left, right in (pair, pair[::-1]))


REFUTED = {
    # (i, j) -> 7 * i + j is one-to-one where j < 7; i * m + j where j < m; and with three digits.
    "digits": Question((*within(j, 7), *within(b, 7)), (7 * i + j - 7 * a - b,), (differ((i, a), (j, b)),)),
    "two digits": Question((*within(j, m), *within(b, m)), (i * m + j - a * m - b,), (differ((i, a), (j, b)),)),
    "three digits": Question(
        (*within(j, m), *within(b, m), *within(k, n), *within(c, n)),
        ((i * m + j) * n + k - (a * m + b) * n - c,),
        (differ((i, a), (j, b), (k, c)),),
    ),
    "strides": Question(
        (*within(j, n), *within(b, n), s - n * t, t - 1), (i * s + j * t - a * s - b * t,), (differ((i, a), (j, b)),)
    ),
    "three constant digits": Question(
        (*within(i, 8), *within(j, 8), *within(k, 4), *within(a, 8), *within(b, 8), *within(c, 4)),
        (32 * i + 4 * j + k - 32 * a - 4 * b - c,),
        (differ((i, a), (j, b), (k, c)),),
    ),
    # q == (i * m + j) // m is i; r == (i * m + j) % m is j.
    "quotient": Question((*within(j, m), *within(i * m + j - q * m, m)), (), (differ((q, i)),)),
    "remainder": Question((*within(j, m), *within(r, m)), (i * m + j - q * m - r,), (differ((r, j)),)),
    "quotient in bounds": Question(
        (*within(i, n * m), *within(i - q * n, n)), (), ((Case((q - m,)), Case((-q - 1,))),)
    ),
    # q == x // m, c == q // n, p == x // (m * n): p is c.
    "quotient of a quotient": Question(
        (*within(x - q * m, m), *within(q - c * n, n), *within(x - p * m * n, m * n)), (), (differ((p, c)),)
    ),
    "quotient of three": Question(
        (*within(x, n * m * k), *within(x - q * k, k), *within(q - p * m, m)), (), ((Case((p - n,)), Case((-p - 1,))),)
    ),
    "four digits": Question(
        (*within(j, m), *within(b, m), *within(k, n), *within(c, n), *within(s, 16), *within(t, 16)),
        (((i * m + j) * n + k) * 16 + s - ((a * m + b) * n + c) * 16 - t,),
        (differ((i, a), (j, b), (k, c), (s, t)),),
    ),
    # An element of an array of any four sizes, beside bounds of machine types that have nothing to do with it.
    "four sizes": Question(
        (
            *(f for v in (k, m, n, s, k * m, n * s, k * m * n * s) for f in (v + 2**63, 2**63 - 1 - v)),
            *(*within(a, k), *within(b, m), *within(c, n), *within(i, s)),
            *(k, m, n, s, ((a * m + b) * n + c) * s + i - k * m * n * s),
        )
    ),
    "rotation": Question(
        (*within(i, n), *within(a, n), *within(i + s - q * n, n), *within(a + s - p * n, n)),
        (i - q * n - a + p * n,),
        (differ((i, a)),),
    ),
    "machine integers": Question(
        (*(f for v in (n, m) for f in (v + 2**31, 2**31 - 1 - v)), *within(i, n), *within(j, m), i * m + j - n * m),
    ),
    "in bounds": Question((*within(i, n), *within(j, m)), (), ((Case((i * m + j - n * m,)), Case((-i * m - j - 1,))),)),
    # q is i // 17, and no fact says that it is no less than 0.
    "a quotient without bounds": Question(
        (*within(i, 221), *within(i - 17 * q, 17), *within(j, 64), *within(k, 8), -1024 * q - 16 * j - k - 1),
    ),
    # i goes over columns first: the element of tile (i % 17, i // 17) is one of another i only if j or k differ.
    "tiles by columns": Question(
        (
            *(f for v, w in ((i, q), (a, p)) for f in (*within(v, 221), *within(v - 17 * w, 17))),
            *(f for v in (j, b) for f in within(v, 12)),
            *(f for v in (k, c) for f in within(v, 8)),
            i - a - 1,
        ),
        (1248 * (i - 17 * q) + 96 * q + 8 * j + k - 1248 * (a - 17 * p) - 96 * p - 8 * b - c,),
    ),
    # Equal quotients and remainders by 4 are of equal numbers.
    "quotient and remainder": Question(
        (*within(i - 4 * q, 4), *within(a - 4 * p, 4)), (q - p, i - 4 * q - a + 4 * p), (differ((i, a)),)
    ),
    "parity": Question((), (2 * x - 2 * y - 1,)),
    "parity of sums": Question((), (x - 2 * a, y - 2 * b - 1, x - y)),
    "between multiples of three": Question((3 * x - 3 * y - 1, 2 - 3 * x + 3 * y)),
    "no multiple": Question((), (6 * x + 10 * y + 15 * p - 1, x - 5 * a, p - 2 * b - 1, y - 3 * c)),
    # Bounds given as choices: n is 4 or 8, i < n and i >= 8.
    "bounds as choices": Question((n - 1 - i, i - 8), (), ((Case((), (n - 4,)), Case((), (n - 8,))),)),
    "squares": Question((), (x * x + 1,)),
}


@pytest.mark.parametrize("name", REFUTED)
def test_questions_of_layouts_are_refuted(name: str) -> None:
    """One-to-one, in bounds, quotients and remainders, with constant and with symbolic extents."""
    proof = find_refutation(REFUTED[name])
    assert proof is not None
    check_refutation(REFUTED[name], proof)
    assert find_refutation(REFUTED[name]) == proof


@pytest.mark.parametrize(
    "question",
    [
        Question(),
        Question((*within(j, m + 1), *within(b, m + 1)), (i * m + j - a * m - b,), (differ((i, a), (j, b)),)),
        Question((*within(i, n), *within(j, m), i * m + j - n * m + 1)),
        Question((x * y - 6, 6 - x * y, x - 2, y - 2)),
    ],
)
def test_questions_with_a_point_are_not_refuted(question: Question) -> None:
    """A stride that is one too small, the last index, a product with factors."""
    assert find_refutation(question) is None


@pytest.mark.parametrize(("products", "count", "missed"), [(False, 250, 0), (True, 60, 6)])
def test_nearly_all_small_questions_are_refuted(products: bool, count: int, missed: int) -> None:
    """Of random questions over boxes, those without a point are refuted: all linear ones, nearly all others."""
    random = Random(f"complete {products}")
    open_questions = 0
    for _ in range(count):
        question = random_question(random, 2, products)
        if not has_point(question, 2) and find_refutation(question, 6_000) is None:
            open_questions += 1
    assert open_questions <= missed


def test_the_budget_ends_the_search() -> None:
    """Nothing is found with no budget."""
    assert find_refutation(REFUTED["three digits"], 0) is None
