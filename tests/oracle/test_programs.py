"""TVM as the oracle of what a text means: random programs and schedules, and the differences by choice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.oracle.campaign import compare_programs, scheduled
from tests.oracle.comparing import Comparer
from tests.random.typed_programs import DOCUMENTED
from tests.shares import one_in, some


@pytest.fixture(scope="module")
def comparer() -> Iterator[Comparer]:
    """One process for TVM and one for libraries."""
    made = Comparer()
    yield made
    made.close()


@one_in(7)
@pytest.mark.parametrize("seed", some((0, 10_000, 20_000, 30_000), 1))
def test_programs_mean_what_tvm_runs(seed: int) -> None:
    """Interpreter, generated C and TVM give the same bits for random programs."""
    tally = compare_programs(range(seed, seed + 40), DOCUMENTED)
    assert not tally.kinds, tally.examples
    assert tally.counts["compared"] >= 25, tally.counts


@one_in(7)
@pytest.mark.parametrize("seed", some((0, 10_000, 20_000), 1))
def test_schedules_keep_what_tvm_runs(seed: int) -> None:
    """What is printed after accepted steps gives, in TVM, what the program gave before them."""
    tally = scheduled(range(seed, seed + 8))
    assert not tally.kinds, tally.examples
    assert tally.counts["schedules compared"] >= 3, tally.counts


@pytest.mark.parametrize("seed", [pytest.param(1_000_000, marks=pytest.mark.campaign)])
def test_many_programs(seed: int) -> None:
    """The same for 5,000 programs and 500 schedules: `python -m tests.oracle` runs more of them."""
    tally = compare_programs(range(seed, seed + 5_000), DOCUMENTED)
    tally.add(scheduled(range(seed, seed + 500)))
    assert not tally.kinds, tally.examples
