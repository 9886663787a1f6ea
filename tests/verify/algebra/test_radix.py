"""Digits of flat indices: each split is an identity, and the usual layouts split into what they were flattened from."""

from __future__ import annotations

from random import Random

import pytest

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, Var, const
from layoutproof.verify.algebra.radix import Polynomial, factors_of, split_digits, stride_radices

P, Q, R, N, M, C = (Var(name) for name in "pqrnmc")
SYMBOLS = frozenset((N, M, C))


def _values(rng: Random) -> dict[str, int]:
    return {name: rng.randint(-9, 9) for name in "pqrnmc"}


@pytest.mark.parametrize(
    ("index", "radices"),
    [
        (P * 4060 + Q * 70 + R, [const(58), const(58), const(70)]),
        ((P * M + Q) * C + R, [N, M, C]),
        ((P * (M + 2) + Q) * C + R - 1, [N, M + 2, C]),
        (P * M * C + (Q - 1) * C + R, [N, M, C]),
        (P * (N + M) + Q, [C, N + M]),
        (P * 7 + 12, [const(9), const(5)]),
        ((P // 4) * M + P % 4, [N, M]),
    ],
)
def test_split_is_an_identity(index: Expr, radices: list[Expr]) -> None:
    """The digits, put together again, are the index, for every value, in range or not."""
    digits = split_digits(index, radices)
    rng = Random(0)
    for _ in range(50):
        env = _values(rng)
        total = 0
        for digit, radix in zip(digits, radices, strict=True):
            total = total * int(evaluate(radix, env)) + int(evaluate(digit, env))
        assert total == int(evaluate(index, env))


def test_flattened_axes_come_back() -> None:
    """The digits of a flattened access are the axes' indices."""
    digits = split_digits((P * (M + 2) + Q + R) * C + 3, [N, M + 2, C])
    assert [Polynomial.of(d) for d in digits] == [Polynomial.of(e) for e in (P, Q + R, const(3))]


def test_factors_in_order() -> None:
    """A product's factors come outermost first."""
    assert factors_of(N * (M + 2) * C) == [N, M + 2, C]


@pytest.mark.parametrize(
    ("index", "extent", "expected"),
    [
        (P * (C * 3) + Q * C + R, C * M * 9, None),
        (P * 12 + Q * 4 + R, const(48), [4, 3, 4]),
        (P * 3 * C * M + Q * C * M + R * M + N % 2, C * M * 9, [3, 3, C, M]),
        (P, const(9), []),
    ],
)
def test_radices_from_strides(index: Expr, extent: Expr, expected: list[Expr | int] | None) -> None:
    """Strides that divide one another tell the radices; a single variable tells nothing."""
    found = stride_radices([index], extent, SYMBOLS)
    if expected is not None:
        assert [Polynomial.of(r) for r in found] == [
            Polynomial.of(e if isinstance(e, Expr) else const(e)) for e in expected
        ]
    else:
        product = Polynomial.of(const(1))
        for radix in found:
            product = product.times(Polynomial.of(radix))
        assert product == Polynomial.of(extent)


def test_polynomials_are_normal_forms() -> None:
    """Equal functions have equal polynomials, sums and products in any order."""
    assert Polynomial.of((P + Q) * (P - Q)) == Polynomial.of(P * P - Q * Q)
    assert Polynomial.of(P - P) == Polynomial({})
    assert Polynomial.of((P << 2) + const(0)) == Polynomial.of(P * 4)
