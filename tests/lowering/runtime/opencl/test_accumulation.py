"""How often a program adds to one cell, by which a device's inexact functions may add up."""

from __future__ import annotations

import pytest
from tests.lowering.small_operators import small

from layoutproof.lowering.runtime.opencl.accumulation import longest_accumulation
from layoutproof.lowering.schedule import Schedule


@pytest.mark.parametrize(
    ("name", "symbols", "steps"),
    [
        ("relu_nhwc", {}, 0),
        ("softmax", {}, 7),
        ("matmul", {}, 7),
        ("global_sum", {}, 9),
        ("sym_row_sum", {"n": 4, "m": 9}, 9),
        ("sym_row_sum", {}, 1),
    ],
)
def test_steps(name: str, symbols: dict[str, int], steps: int) -> None:
    """The loops around an accumulation that its cell does not depend on; one whose extent is not known counts once."""
    assert longest_accumulation(Schedule(small(name)).lower(), symbols) == steps


def test_only_inexact_kernels_have_leeway() -> None:
    """Sums of exact operations are compared bit for bit, however long; sums of exponentials have a unit for each addition."""
    exact, inexact = small("global_sum"), small("softmax")
    assert Schedule(exact).build("opencl").allowed_ulps(exact, {}) == 0
    kernel = Schedule(inexact).build("opencl")
    assert kernel.allowed_ulps(inexact, {}) == 11 and kernel.report.self_check == "equal to the interpreter, within 11 ulp"
    assert Schedule(inexact).build("c").allowed_ulps(inexact, {}) == 4
