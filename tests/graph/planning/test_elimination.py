"""Elimination finds the least sum of random tables, and what it is through each cell, as trying everything does."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest
from tests.shares import one_in

from layoutproof.graph.planning import elimination
from layoutproof.graph.planning.elimination import Table, least_sum

CANNOT = 10_000


def random_tables(seed: int, dtype: type = np.int64) -> tuple[dict[int, int], list[Table]]:
    """Tables over a few variables, some cells of which are impossible; some speak of nothing."""
    chance = Random(seed)
    sizes = {variable: chance.randint(1, 3) for variable in range(1, 7)}
    tables = []
    for _ in range(chance.randint(3, 9)):
        scope = tuple(chance.sample(sorted(sizes), chance.randint(0, 3)))
        cells = [
            CANNOT if chance.random() < 0.15 else chance.randint(0, 5)
            for _ in range(int(np.prod([sizes[v] for v in scope])))
        ]
        tables.append(Table(scope, np.asarray(cells, dtype).reshape([sizes[v] for v in scope])))
    return sizes, tables


def summed(tables: list[Table], states: dict[int, int]) -> int:
    """The sum of a choice."""
    return min(CANNOT, sum(int(table.cells[tuple(states[v] for v in table.scope)]) for table in tables))


@one_in(7)
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("dtype", [np.int64, np.object_])
def test_the_least_of_all_choices(seed: int, dtype: type) -> None:
    """The choice that is found is one of the least, and so is the least one through each cell of each table."""
    sizes, tables = random_tables(seed, dtype)
    every = [dict(zip(sizes, states, strict=True)) for states in product(*(range(size) for size in sizes.values()))]
    found = least_sum(sizes, tables, CANNOT, through=True)
    assert found is not None
    assert found.least == min(summed(tables, states) for states in every)
    if found.least < CANNOT:
        assert summed(tables, dict(found.states)) == found.least
    for table, through in zip(tables, found.through, strict=True):
        for cell in product(*(range(sizes[v]) for v in table.scope)):
            passing = [
                states for states in every if all(states[v] == k for v, k in zip(table.scope, cell, strict=True))
            ]
            assert min(int(through[cell]), CANNOT) == min(summed(tables, states) for states in passing)


def test_numbers_of_any_size() -> None:
    """Sums that no machine word holds are right to the last digit."""
    large = 10**30
    tables = [
        Table((1,), np.asarray([large, large + 1], np.object_)),
        Table((1, 2), np.asarray([[3, 2], [0, 1]], np.object_)),
    ]
    found = least_sum({1: 2, 2: 2}, tables, 10 * large)
    assert found is not None and (found.least, dict(found.states)) == (large + 1, {1: 1, 2: 0})


def test_tables_that_hang_together_too_closely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every variable meets every other one there is no answer instead of a table without end."""
    monkeypatch.setattr(elimination, "MOST_CELLS", 8)
    sizes = dict.fromkeys(range(5), 2)
    tables = [Table((a, b), np.zeros((2, 2), np.int64)) for a in sizes for b in sizes if a < b]
    assert least_sum(sizes, tables, CANNOT) is None
    monkeypatch.setattr(elimination, "MOST_CELLS", 64)
    assert least_sum(sizes, tables, CANNOT) is not None
    monkeypatch.setattr(elimination, "MOST_JOINT_CELLS", 32)
    assert least_sum(sizes, tables, CANNOT) is None
    assert least_sum(sizes, tables[:2], CANNOT) is not None
