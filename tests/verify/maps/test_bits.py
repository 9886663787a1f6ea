"""Maps over bits: the matrix decides injectivity and gives inverse, collision and padding, as brute force does."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from tests.shares import one_in

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, Var, const, logical_or
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.text import expr_text
from layoutproof.verify.maps.bits import kernel_points, largest_value, read_linear
from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.maps.conditions import input_exprs, padding_exprs
from layoutproof.verify.verdict.verdict import Status


def random_linear(rng: Random, names: str, bits: int) -> Expr:
    """An XOR of shifted and masked inputs."""
    result: Expr = const(rng.choice([0, 0, 1, 5]))
    for _ in range(rng.randint(1, 4)):
        term: Expr = Var(rng.choice(names))
        shift = rng.randint(-2, 2)
        term = term << shift if shift > 0 else term >> -shift if shift < 0 else term
        if rng.random() < 0.5:
            term = term & rng.randint(0, (1 << bits) - 1)
        result = result ^ term
    return result


@one_in(14)
@pytest.mark.parametrize("seed", range(150))
def test_elimination_agrees_with_brute_force(seed: int) -> None:
    """Random linear maps on one or two inputs: verdict, inverse at every image, predicate at every cell of the box,
    collision.
    """
    rng = Random(seed)
    names = "i" if rng.random() < 0.5 else "ij"
    extents = [1 << rng.randint(1, 3) for _ in names]
    outputs = [random_linear(rng, names, 4) for _ in range(rng.randint(1, 3))]
    linear = read_linear(outputs, list(names), extents)
    assert linear is not None
    index_map = IndexMap(tuple(Var(n) for n in names), tuple(outputs))
    image = {point: index_map.evaluate(point) for point in product(*map(range, extents))}
    box = [max(cell[axis] for cell in image.values()) + 1 + rng.randint(0, 2) for axis in range(len(outputs))]
    cells = [Var(f"p{axis}") for axis in range(len(outputs))]
    for axis, output in enumerate(outputs):
        assert largest_value(output, list(names), extents) == max(cell[axis] for cell in image.values())
    reached = set(image.values())
    assert (linear.kernel == 0) == (len(reached) == len(image))
    assert 1 << linear.rank == len(reached)
    predicate = logical_or(*padding_exprs(linear, box, cells))
    for cell in product(*map(range, box)):
        env = {f"p{axis}": c for axis, c in enumerate(cell)}
        assert bool(evaluate(predicate, env)) == (cell not in reached), expr_text(predicate, "plain")
    if linear.kernel:
        first, second = kernel_points(linear, extents)
        assert first != second and index_map.evaluate(first) == index_map.evaluate(second)
        assert all(0 <= i < e for i, e in zip(second, extents, strict=True))
        return
    inverse = input_exprs(linear, extents, cells)
    for point, cell in image.items():
        env = {f"p{axis}": c for axis, c in enumerate(cell)}
        assert tuple(evaluate(x, env) for x in inverse) == point


@pytest.mark.parametrize(
    ("text", "extents"),
    [
        (lambda i, j: [i + j], (8, 8)),
        (lambda i, j: [i * 3], (8, 8)),
        (lambda i, j: [i & j], (8, 8)),
        (lambda i, j: [i // 3], (8, 8)),
        (lambda i, j: [i ^ j], (8, 6)),
        (lambda i, j: [i - j], (8, 8)),
    ],
)
def test_what_is_not_linear_is_left_alone(text: object, extents: tuple[int, ...]) -> None:
    """Carries, odd factors, products of bits and extents that are no powers of two are not read as linear."""
    assert callable(text)
    assert read_linear(text(Var("i"), Var("j")), ["i", "j"], list(extents)) is None


def test_disjoint_sums_and_masks_are_linear() -> None:
    """`+` and `-` without carries, `|` of separate fields, powers of two as factors and divisors."""
    i = Var("i")
    outputs: list[Expr] = [(i // 4) * 4 + i % 4, i - (i & 3), (i & 3) | ((i >> 2) << 4), i * 2 + 1]
    assert read_linear(outputs, ["i"], [64]) is not None


def test_gray_code_is_inverted_in_closed_form() -> None:
    """The Gray code on a million points, and on 2**30, which nobody enumerates, is decided by bits."""
    for bits in (6, 20, 30):
        report = check_map("lambda i: [i ^ (i >> 1)]", (1 << bits,))
        assert report.bijective.status is Status.PROVED
        assert report.bijective.engine in ("GF(2)", "symbolic")
        assert report.inverse is not None
        for i in (0, 1, (1 << bits) - 1, (1 << bits) // 3):
            assert report.inverse.evaluate((i ^ (i >> 1),)) == (i,)


def test_large_swizzle_that_loses_a_bit_is_refuted() -> None:
    """The kernel gives two indices with one image, far apart."""
    report = check_map("lambda i: [(i ^ (i >> 20)) & 1048575]", (1 << 30,))
    assert report.injective.status is Status.REFUTED
    example = report.injective.counterexample
    assert example is not None
    first, second = example["first"][0], example["second"][0]
    assert (first ^ (first >> 20)) & 1048575 == (second ^ (second >> 20)) & 1048575 and first != second
    assert report.padding.cells == 0
