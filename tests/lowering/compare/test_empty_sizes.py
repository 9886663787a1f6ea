"""Programs that differ only where sizes are 0: open, with the condition to ask with."""

from __future__ import annotations

import pytest

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
