"""Programs that differ only where sizes are 0: open, with the condition to ask with."""

from __future__ import annotations

import pytest
from tests.lowering.compare.copies import func

from layoutproof.ir.script.reader import loads
from layoutproof.lowering.compare.compare_programs import compare
from layoutproof.verify.verdict.verdict import Status

BEFORE = """@T.prim_func
def f(A: T.Buffer(("n", "m"), "float32"), B: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(n, m):
        with T.sblock("sum"):
            vi, vj = T.axis.remap("RR", [i, j])
            with T.init():
                B[0] = T.float32(0)
            B[0] = B[0] + A[vi, vj]
"""
AFTER = """@T.prim_func
def f(A: T.Buffer(("n", "m"), "float32"), B: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    B[0] = T.float32(0)
    for i, j in T.grid(n, m):
        B[0] = B[0] + A[i, j]
"""


def test_either_of_two_sizes() -> None:
    """A sum over two axes is not initialised where either is empty: the answer names both."""
    found = compare(loads(BEFORE), loads(AFTER))
    assert found.status is Status.UNKNOWN
    reason = found.verdicts[0].reason
    assert reason is not None and all(f"{size} >= 1" in reason for size in "nm")
    assert compare(loads(BEFORE), loads(AFTER), where="n >= 1 and m >= 1").status is Status.PROVED


@pytest.mark.parametrize(
    ("right", "wrong"), [("B[0] + A[i, j]", "B[0] - A[i, j]"), ("T.grid(n, m)", "T.grid(n, m - 1)")]
)
def test_what_differs_elsewhere_too(right: str, wrong: str) -> None:
    """Where the programs differ for sizes of 1 and more, the difference stands."""
    assert compare(loads(BEFORE), loads(AFTER.replace(right, wrong))).status is Status.REFUTED


@pytest.mark.parametrize(
    ("extent", "where", "status"),
    [
        ("n - 5", None, Status.UNKNOWN),
        ("n - 5", "n >= 5", Status.PROVED),
        ("k", None, Status.UNKNOWN),
        ("n", None, Status.PROVED),
        ("n * n", None, Status.PROVED),
    ],
)
def test_memory_has_no_extent_below_zero(extent: str, where: str | None, status: Status) -> None:
    """TVM fails where memory would have one; what the program before allocates, too, is no new failure."""
    signature = 'A: T.Buffer((n,), "int32"), n: T.int32, k: T.int32'
    plain = "for i in range(n):\n    A[i] = 7"
    with_memory = f't = T.alloc_buffer(({extent},), "int32")\n{plain}'
    bodies = plain, with_memory, with_memory.replace("[i]", "[n - 1 - i]")
    before, after, other = (func(signature, body) for body in bodies)
    assert compare(before, after, where=where).status is status
    assert compare(after, other, where=where).status is Status.PROVED
