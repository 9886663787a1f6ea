"""Slices of the campaign against steps of GPU schedules, and the walk that judges them."""

from __future__ import annotations

import random

import numpy as np
import pytest

import layoutproof as lp
from tests.attack.kernel_steps import CHANGES, campaign, is_right, steps
from tests.oracle.kernel_walk import Broken, run_kernel
from tests.shares import one_in


@one_in(7)
@pytest.mark.parametrize("part", range(4))
def test_the_walk_confirms_every_step(part: int) -> None:
    """The kernels that are proved compute, thread by thread in random orders, what their programs mean."""
    assert len(steps()) > 25
    for step in steps()[part::4]:
        assert is_right(step.rewrite.old, step.rewrite.new, 1), step


@one_in(14)
@pytest.mark.parametrize("seed", range(8))
def test_no_wrong_kernel_is_proved(seed: int) -> None:
    """Fifty mutants each; most of them are wrong."""
    counts = campaign(50, seed)
    assert sum(number for verdict, number in counts.items() if verdict.startswith("wrong, ")) > 20
    assert "wrong, proved" not in counts


def test_every_kind_of_change_is_made() -> None:
    """Each of them finds a place in some kernel."""
    for change in CHANGES.values():
        assert any(change(step.rewrite, random.Random(k)) is not None for k, step in enumerate(steps() * 3))


WRONG = {
    "a race": "        S[0] = t",
    "out of bounds": "        S[t + 1] = t",
    "before it is written": "        B[t] = S[t]",
    "barrier": '        if t < 2:\n            T.tvm_storage_sync("shared")\n        B[t] = 0',
}


@pytest.mark.parametrize("what", WRONG)
def test_the_walk_finds_what_is_wrong(what: str) -> None:
    """Races, accesses out of bounds, reads of what was not written, barriers in branches."""
    text = f"""from tvm.script import tir as T

@T.prim_func
def f(B: T.Buffer((4,), "int32")):
    S = T.alloc_buffer((4,), "int32", scope="shared")
    for t in T.thread_binding(4, thread="threadIdx.x"):
{WRONG[what]}
"""
    with pytest.raises(Broken, match=what):
        run_kernel(lp.loads(text), {"B": np.zeros(4)}, random.Random(0))
