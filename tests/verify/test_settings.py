"""What holds in a block, and the factor on budgets."""

from __future__ import annotations

import pytest

from layoutproof.verify.isl.space import limited
from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.settings import Settings, scaled, settings, within
from layoutproof.verify.verdict.verdict import Status


def test_budgets_grow_and_shrink() -> None:
    """A budget is multiplied, stays at least 1, and fits the engines' counters."""
    assert scaled(500) == 500
    with within(Settings(4)):
        assert scaled(500) == 2000 and scaled(1 << 30) == (1 << 31) - 1
        with within(Settings(0.001)):
            assert scaled(500) == 1 and scaled(500_000) == 500
        assert scaled(500) == 2000
    assert scaled(500) == 500


@pytest.mark.parametrize("factor", [0.0, -1.0, float("inf"), float("nan")])
def test_factors_that_are_none(factor: float) -> None:
    """A factor that would mean nothing is refused, and the one in force stays."""
    with pytest.raises(ValueError, match="factor"):
        Settings(factor)
    assert settings().budget_scale == 1.0


@pytest.mark.parametrize("factor", [0.00001, 0.0001, 0.001, 0.01])
def test_next_to_no_budget_is_unknown(factor: float) -> None:
    """Wherever isl stops, the answer is unknown, and never an exception of a library."""
    for text, where in (
        ("lambda i, j: [i, j//4, j%4]", "m >= 1"),
        ("lambda i, j: [(i*j)//4 + i, j%4]", "m >= 1 and m < 70"),
    ):
        with within(Settings(factor)):
            assert check_map(text, (16, "m"), where).injective.status in (Status.PROVED, Status.UNKNOWN, Status.REFUTED)


def test_it_reaches_isl() -> None:
    """The limit that isl works under is the multiplied one."""
    with within(Settings(3)), limited(1000) as ctx:
        assert ctx.get_max_operations() == 3000
