"""Threads that all do the same disturb one another where each stores several values to one cell in turn."""

from __future__ import annotations

import pytest

import layoutproof as lp
from layoutproof.verify.verdict.verdict import Status

LOOPS = """
@T.prim_func
def f(C: T.Buffer((80,), "int32"), D: T.Buffer((9, 9), "int32"), E: T.Buffer((2, 4, 2), "int32")):
    T.func_attr({"tirx.noalias": True})
    for t in LOOP:
        for i, j in T.grid(4, 4):
            PLACE = i * 4 + j
"""


def status(place: str) -> Status:
    """Of 32 threads that store to some place as a loop does."""
    text = LOOPS.replace("PLACE", place)
    loop, threads = "range(1)", 'T.thread_binding(32, thread="threadIdx.x")'
    return lp.compare(*(lp.loads(text.replace("LOOP", each)) for each in (loop, threads))).status


@pytest.mark.parametrize(
    "place",
    [
        "C[i * 4 + j]",
        "C[70 - j * 5 - i]",
        "D[i, j]",
        "D[j + 1, i + j + 2]",
        "D[2 + (i * 4 + j) // 4, 3 + (i * 4 + j) % 4]",
        "C[(i * 4 + j) // 8 * 16 + (i * 4 + j) % 8]",
        "E[(i * 4 + j) // 8, (i * 4 + j) // 2 % 4, (i * 4 + j) % 2]",
    ],
)
def test_cells_of_their_own(place: str) -> None:
    """Digits, or sums of digits, say which iteration it is: no thread stores to a cell twice."""
    assert status(place) is Status.PROVED


@pytest.mark.parametrize(
    "place",
    [
        "C[i + j]",
        "C[i * 3 + j]",
        "C[(i * 4 + j) // 4]",
        "D[i, j // 2]",
        "D[(i * 4 + j) // 4, (i * 4 + j) % 3]",
        "C[(i * 4 + j) // 8 * 4 + (i * 4 + j) % 8]",
        "C[i - j + 3]",
        "C[i * 0 + j]",
        "C[T.max(i, j)]",
    ],
)
def test_cells_of_several_iterations(place: str) -> None:
    """All indices are named, and do not say which iteration it is: a thread may find what another one stored late."""
    assert status(place) is not Status.PROVED
