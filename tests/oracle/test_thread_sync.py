"""Barriers that a kernel's text does not have are taken to stand only where TVM puts them."""

from __future__ import annotations

import pytest

from tests.oracle.thread_sync import HEAD, judge, random_kernel
from tests.shares import one_in

WITHOUT_BARRIER = {
    "one thread's own cell does not separate other stores": """
    S[(tx + 1) % 4] = tx + 1
    Q[(tx + 1) % 4] = A[tx] + 1
    S[tx] = Q[(tx + 1) % 4] + 1
""",
    "a barrier inside a loop does not separate what is before it": """
    Q[tx * 2] = tx + 1
    S[(tx + 1) % 4] = tx + 1
    for k in range(2):
        Q[k % 2 * 4 + 3 - tx] = A[tx] + k
        S[3 - tx] = S[k % 2 * 4 + 3 - tx] + k
        S[tx * 2] = tx + k
""",
    "nor what a barrier before the loop was put in for": """
    S[tx] = A[tx]
    for k in range(3):
        Q[tx] = A[tx]
        B[tx] = S[3 - tx]
        Q[3 - tx] = 5
        S[tx + 4] = A[tx]
        B[tx + 4] = S[7 - tx]
""",
    "TVM does not tell iterations apart": """
    S[tx] = A[tx]
    for k in range(4):
        B[k * 4 + tx] = S[(tx + k) % 4]
        S[(tx + k) % 4] = A[tx] + k
""",
    "threads that share the cell of one index": """
    S[tx // 2] = A[tx]
    B[tx] = S[tx // 2]
""",
}
WITH_BARRIER = {
    "a cell of another thread": """
    S[tx] = A[tx]
    B[tx] = S[3 - tx]
""",
    "a cell of all threads": """
    S[0] = A[0]
    B[tx] = S[0]
""",
    "a range of cells, though each thread's own": """
    for j in range(2):
        S[tx * 2 + j] = A[tx]
    for j in range(2):
        B[tx * 2 + j] = S[tx * 2 + j]
    S[tx] = A[tx]
""",
    "again and again": """
    for k in range(4):
        S[tx] = A[tx] + k
        B[k * 4 + tx] = S[3 - tx]
""",
    "only in some iterations": """
    S[tx] = A[tx]
    for k in range(4):
        for j in range(2):
            B[k * 4 + tx] = S[(tx + j * k) % 4]
""",
}


@pytest.mark.parametrize("body", WITHOUT_BARRIER.values(), ids=WITHOUT_BARRIER)
def test_no_barrier_is_taken_where_tvm_puts_none(body: str) -> None:
    """These have races as TVM lowers them."""
    assert judge(HEAD + body.lstrip("\n")) == "not accepted"


@pytest.mark.parametrize("body", WITH_BARRIER.values(), ids=WITH_BARRIER)
def test_barriers_that_tvm_puts(body: str) -> None:
    """These have none."""
    assert judge(HEAD + body.lstrip("\n")) == "accepted, with barriers"


@one_in(4)
@pytest.mark.parametrize("first", range(0, 600, 50))
def test_random_kernels(first: int) -> None:
    """What is accepted has no race with TVM's barriers."""
    assert sum(judge(random_kernel(seed)).startswith("accepted") for seed in range(first, first + 25)) >= 6
