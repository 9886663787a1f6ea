"""The oracle itself: answers that were worked out by hand, and a generator that draws all kinds of maps."""

from collections import Counter

import numpy as np
import pytest

from tests.oracle import maps as oracle
from tests.random.index_maps import CATEGORIES, draw_map
from tests.shares import one_in

KNOWN = [
    ("lambda i: [i//8, i%8]", (16,), (2, 8), []),
    ("lambda i: [i//8, i%8]", (14,), (2, 8), [(1, 6), (1, 7)]),
    ("lambda i: [(i+2)//8, (i+2)%8]", (14,), (2, 8), [(0, 0), (0, 1)]),
    ("lambda i: [(i+2)//8, (i+2)%8]", (18,), (3, 8), [(0, 0), (0, 1), (2, 4), (2, 5), (2, 6), (2, 7)]),
    ("lambda i: [i//4, i%4]", (3,), (1, 4), [(0, 3)]),
    ("lambda i: [i//4, i & 3]", (1,), (1, 4), [(0, 1), (0, 2), (0, 3)]),
    ("lambda i, j: [j, i]", (2, 3), (3, 2), []),
    ("lambda i: [i//8, (i//8) ^ (i%8)]", (64,), (8, 8), []),
    ("lambda i, j: [i, (i+j)%4]", (4, 4), (4, 4), []),
    ("lambda i: [(5*i)%8]", (8,), (8,), []),
    ("lambda i: [2*i + 1]", (3,), (6,), [(0,), (2,), (4,)]),
    ("lambda i: [i, 0]", (2,), (2, 1), []),
    ("lambda i: [select(i < 1 and not i == 3 or 2 <= i < 3, i, 4 - i), truncdiv(i - 2, 2) + 1]", (3,), (4, 2), None),
]


@pytest.mark.parametrize(("text", "shape", "physical", "padding"), KNOWN)
def test_worked_cases(
    text: str, shape: tuple[int, ...], physical: tuple[int, ...], padding: list[tuple[int, ...]] | None
) -> None:
    """Shape and padding of injective maps that were worked out by hand."""
    true = oracle.truth(text, shape)
    assert (true.injective, true.shape) == (True, physical)
    if padding is not None:
        assert [np.unravel_index(k, physical) for k in np.flatnonzero(true.padding)] == padding
        assert (true.cells, true.bijective) == (len(padding), not padding)


def test_maps_that_are_not_injective() -> None:
    """Two logical indices with one image are noticed, and cells that nothing reaches are counted all the same."""
    true = oracle.truth("lambda i: [i//4, 2*(i%2)]", (14,))
    assert (true.injective, true.bijective, true.shape, true.cells) == (False, False, (4, 3), 4)


def test_images_below_zero_have_no_shape() -> None:
    """The first logical index whose image goes below zero is named."""
    true = oracle.truth("lambda i, j: [i - 2*j, j]", (4, 3))
    assert (true.negative, true.shape) == ((0, 1), None)


def test_division_by_zero_is_no_answer() -> None:
    """A map that divides by zero somewhere has no image there."""
    with pytest.raises(FloatingPointError):
        oracle.truth("lambda i, j: [i // j]", (4, 3))


def test_separators_group_the_axes() -> None:
    """A separator is the index of the axis before it, and each group is one flattened axis."""
    true = oracle.truth("lambda n, c: [n, c//4, AXIS_SEPARATOR, c%4]", (2, 6))
    assert (true.separators, true.flattened) == ((1,), (4, 4))


def test_both_ways_of_running_a_predicate_agree() -> None:
    """Plain integers on a small box and arrays on a large one give the same cells."""
    text = "p0 < 3 and not 2 <= p1 % 4 < 4 or (p0 ^ p1) == 5 or p1 >> 2 == 3"
    small = oracle.cells_where(text, (60, 60))
    large = oracle.cells_where(text, (70, 60))
    assert 0 < small.sum() < small.size
    assert np.array_equal(small, large[: small.size])


def test_what_anyone_can_evaluate() -> None:
    """Operators and names outside the promised ones are found."""
    assert oracle.foreign("p0 // 4 + n >= 3 and not (p1 ^ 2) << 1 == -p0", ["p0", "p1", "n"]) == []
    assert oracle.foreign("min(p0, 3) == q", ["p0"]) == ["min(p0, 3)", "q", "min"]
    assert oracle.foreign("p0 | 1 == 2.0 if p0 else p0 / 2", ["p0"]) != []


@one_in(9)
def test_generator_draws_every_kind() -> None:
    """Every category is drawn, injective and not; some images go below zero, and some maps are onto their box."""
    drawn = [draw_map(seed) for seed in range(600)]
    kinds: Counter[str] = Counter()
    for one in drawn:
        true = oracle.truth(one.text, one.shape)
        kinds[one.category] += 1
        kinds["below zero" if true.negative is not None else "injective" if true.injective else "not injective"] += 1
        kinds["onto"] += true.negative is None and true.bijective
    assert set(CATEGORIES) <= set(kinds)
    assert min(kinds["injective"], kinds["not injective"], kinds["onto"]) >= 60 and kinds["below zero"] >= 2


def test_a_seed_names_a_map() -> None:
    """The same seed draws the same map."""
    assert [draw_map(seed) for seed in range(50)] == [draw_map(seed) for seed in range(50)]
