"""Expressions from tables: the predicate is true exactly on the mask, the values are right where they are given,
nothing traps.
"""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest
from tests.shares import one_in

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.text import expr_text
from layoutproof.verify.maps.tables import TooManyPieces, everything_but, predicate_of, values_of


def cells_of(box: tuple[int, ...]) -> list[Expr]:
    """p0, p1, ..."""
    return [Var(f"p{axis}") for axis in range(len(box))]


@one_in(7)
@pytest.mark.parametrize("seed", range(120))
def test_predicate_is_true_exactly_on_the_mask(seed: int) -> None:
    """Random masks, structured and not, of one to three axes."""
    rng = np.random.default_rng(seed)
    box = tuple(int(n) for n in rng.integers(1, 7, size=rng.integers(1, 4)))
    index = np.indices(box)
    weights = rng.integers(0, 4, size=len(box))
    total = np.tensordot(weights, index, axes=1)
    kinds = [
        rng.random(box) < 0.3, total % 3 == 0, total > rng.integers(0, 8),
        np.ones(box, dtype=bool), np.zeros(box, dtype=bool),
        index[0] % 2 == 0, (index[0] == 1) | (index[-1] >= 2),
    ]  # fmt: skip
    mask = np.asarray(kinds[seed % len(kinds)])
    predicate = predicate_of(mask, cells_of(box))
    for cell in product(*map(range, box)):
        assert bool(evaluate(predicate, {f"p{k}": c for k, c in enumerate(cell)})) == bool(mask[cell])


@pytest.mark.parametrize(
    ("mask", "text"),
    [
        (np.arange(16) % 4 == 3, "p0%4 == 3"),
        (np.arange(10) >= 7, "p0 >= 7"),
        ((np.arange(10) < 3) | (np.arange(10) >= 8), "p0 < 3 or p0 >= 8"),
        (np.arange(12).reshape(3, 4) >= 10, "4*p0 + p1 >= 10"),
        (np.arange(12).reshape(3, 4) % 4 == 0, "p1 == 0"),
        (~np.isin(np.arange(40), [3, 9, 31]), "p0 != 3 and p0 != 9 and p0 != 31"),
        (np.isin(np.arange(40), [6, 9, 12, 15, 18, 30]), "p0 >= 6 and p0 < 19 and p0%3 == 0 or p0 == 30"),
        (np.subtract.outer(np.arange(9), np.arange(7)) != 1, "p1 + 1 != p0"),
        (np.subtract.outer(np.arange(9), np.arange(7)) > 2, "p1 + 2 < p0"),
        (np.abs(np.subtract.outer(np.arange(9), np.arange(9))) > 2, "p1 + 2 < p0 or p1 >= p0 + 3"),
        (np.add.outer(np.arange(5), 2 * np.arange(9)) % 2 == 0, "p0%2 == 0"),
    ],
)
def test_usual_masks_are_short(mask: np.ndarray, text: str) -> None:
    """Thresholds, repetitions and single axes are found."""
    assert expr_text(predicate_of(mask, cells_of(mask.shape)), "plain") == text


@one_in(7)
@pytest.mark.parametrize("seed", range(200))
def test_bands_and_evenly_spaced_runs_are_exact(seed: int) -> None:
    """Random sets between lines, a few cells off them, and rows of evenly spaced runs: true exactly on the mask."""
    rng = np.random.default_rng(5000 + seed)
    box: tuple[int, ...] = (int(rng.integers(2, 14)), int(rng.integers(2, 14)))
    x, y = np.indices(box)
    slopes, offsets = rng.integers(-3, 4, size=3), rng.integers(-10, 20, size=3)
    mask = (y >= slopes[0] * x + offsets[0]) & (y < slopes[1] * x + offsets[1]) & (y < slopes[2] * x + offsets[2] + 9)
    if seed % 4 == 1:
        mask[tuple(rng.integers(0, box))] ^= True
    if seed % 4 == 2:
        box, step = (int(rng.integers(30, 90)),), int(rng.integers(2, 9))
        along = np.arange(box[0])
        mask = (
            (along % step < rng.integers(1, step))
            & (along >= rng.integers(0, 20))
            & (along < rng.integers(20, box[0] + 1))
        )
    mask = ~mask if rng.random() < 0.5 else mask
    predicate = predicate_of(mask, cells_of(box))
    for cell in product(*map(range, box)):
        assert bool(evaluate(predicate, {f"p{k}": c for k, c in enumerate(cell)})) == bool(mask[cell])


@pytest.mark.parametrize("taken", [[0], [7], [99], [0, 1, 2], [3, 50, 51, 99], [*range(0, 100, 7)], [*range(100)]])
def test_everything_but_a_few_cells(taken: list[int]) -> None:
    """The condition that a cell is none of some, without a mask of the whole axis."""
    predicate = everything_but(np.array(taken), 100, Var("p0"))
    assert [bool(evaluate(predicate, {"p0": c})) for c in range(100)] == [c not in taken for c in range(100)]


@pytest.mark.parametrize("width", [3, 64, 65, 200])
def test_equal_slices_are_found_at_every_width(width: int) -> None:
    """Slices of more cells than a word has bits are compared whole: rows that differ in one cell are told apart."""
    rows = np.zeros((6, width), dtype=bool)
    rows[[0, 3], 0], rows[[1, 4], width - 1], rows[5, width // 2] = True, True, True
    predicate = predicate_of(rows, cells_of(rows.shape))
    for cell in product(range(6), range(width)):
        assert bool(evaluate(predicate, {"p0": cell[0], "p1": cell[1]})) == bool(rows[cell])


@one_in(7)
@pytest.mark.parametrize("seed", range(120))
def test_values_are_right_where_they_are_given(seed: int) -> None:
    """Random tables on some of the cells: linear, periodic, in pieces, arbitrary."""
    rng = np.random.default_rng(1000 + seed)
    box = tuple(int(n) for n in rng.integers(1, 7, size=rng.integers(1, 4)))
    size = int(np.prod(box))
    offsets = np.sort(rng.choice(size, size=rng.integers(1, size + 1), replace=False)).astype(np.int64)
    shuffled = rng.permutation(len(offsets))
    kinds = [
        offsets * 3 + 1, offsets // 4 * 7 + offsets % 4, np.where(offsets < size // 2, offsets, 2 * offsets - 5),
        rng.integers(0, 50, size=len(offsets)), offsets % 3, -offsets,
    ]  # fmt: skip
    values = np.asarray(kinds[seed % len(kinds)], dtype=np.int64)
    expr = values_of(offsets[shuffled], values[shuffled], box, cells_of(box))
    wanted = dict(zip(offsets.tolist(), values.tolist(), strict=True))
    for offset, cell in enumerate(product(*map(range, box))):
        value = evaluate(expr, {f"p{k}": c for k, c in enumerate(cell)})
        assert wanted.get(offset, value) == value


def test_repeating_values_are_short() -> None:
    """A table that repeats with a rise is written with `//` and `%`, not piece by piece."""
    offsets = np.arange(60, dtype=np.int64)
    values = offsets // 5 * 9 + np.array([0, 7, 1, 3, 2])[offsets % 5]
    text = expr_text(values_of(offsets, values, (60,), [Var("p0")]), "plain")
    assert "p0%5" in text and len(text) < 150


def test_noise_without_end_is_given_up() -> None:
    """A table of many thousand unrelated values has no expression of moderate size."""
    rng = Random(1)
    values = np.array([rng.randrange(10**6) for _ in range(20_000)], dtype=np.int64)
    with pytest.raises(TooManyPieces):
        values_of(np.arange(20_000, dtype=np.int64), values, (20_000,), [Var("p0")])
    noise = np.random.default_rng(1).random((300, 300)) < 0.5
    with pytest.raises(TooManyPieces):
        predicate_of(noise, cells_of((300, 300)))
