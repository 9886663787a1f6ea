"""Polynomials have one normal form, and their arithmetic is that of their values."""

from __future__ import annotations

from random import Random

import pytest
from tests.verify.kernel.questions import NAMES, random_poly, value

from layoutproof.verify.kernel.polynomials import Poly
from layoutproof.verify.kernel.rejected import Rejected

x, y = Poly.var("x"), Poly.var("y")


def test_equal_polynomials_are_equal_objects() -> None:
    """Terms are sorted and collected; zeros vanish."""
    assert (x + y) * (x - y) == x * x - y * y
    assert hash(y * x) == hash(x * y)
    assert x - x == Poly() == Poly.const(0) == 0 * x
    assert 3 - x == -(x - 3)
    assert (x * y + 2).names() == {"x", "y"}
    assert ((x - 7).constant, x.constant, Poly().constant) == (-7, 0, 0)
    assert [p.is_constant for p in (x, Poly(), Poly.const(4), x - 1)] == [False, True, True, False]


def test_arithmetic_agrees_with_values() -> None:
    """Sums, differences and products of random polynomials, at random points."""
    random = Random("values")
    for _ in range(300):
        p, q = random_poly(random, True), random_poly(random, True)
        point = {name: random.randint(-9, 9) for name in NAMES}
        assert value(p + q, point) == value(p, point) + value(q, point)
        assert value(p - q, point) == value(p, point) - value(q, point)
        assert value(p * q, point) == value(p, point) * value(q, point)
        assert value(5 - p * 3, point) == 5 - 3 * value(p, point)
        assert Poly.from_json(p.to_json()) == p


def test_terms_are_read_in_any_order() -> None:
    """Unsorted names and repeated monomials have the meaning of their sum."""
    assert Poly.from_json([[1, ["y", "x"]], [2, []], [1, ["x", "y"]], [0, ["x"]]]) == 2 * x * y + 2


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        "x",
        1,
        [1],
        [[1]],
        [[1, ["x"], 0]],
        [["1", ["x"]]],
        [[1.0, ["x"]]],
        [[True, ["x"]]],
        [[1, "x"]],
        [[1, [None]]],
        [[1, [["x"]]]],
        [[1 << 5000, []]],
        [[1, ["x"] * 100]],
        [[1, []]] * 20_000,
    ],
)
def test_other_data_is_rejected(data: object) -> None:
    """Anything but pairs of an integer and names is rejected."""
    with pytest.raises(Rejected):
        Poly.from_json(data)


def test_products_are_limited() -> None:
    """A product with too many terms is rejected, not computed."""
    wide = Poly.of({(f"x{i:04}",): 1 for i in range(2000)})
    with pytest.raises(Rejected, match="too large"):
        wide * wide
