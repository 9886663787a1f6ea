"""Reading small programs for tests of obligations, and picking verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import dedent

from tests.tree import ROOT

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.verdict.verdict import Status, Verdict

OPERATORS = sorted((ROOT / "tests" / "data" / "operators").glob("*.py"))
PAIRS = sorted((ROOT / "tests" / "data" / "pairs").glob("*.after.py"))

CONVOLUTION = """
@T.prim_func
def main(
    A: T.Buffer(("N", "H", "W", "C"), "float32"),
    F: T.Buffer((3, 3, "C", "K"), "float32"),
    B: T.Buffer(("N", "H", "W", "K"), "float32"),
):
    N, H, W, C, K = T.int32(), T.int32(), T.int32(), T.int32(), T.int32()
    T.func_attr({"tirx.noalias": True})
    P = T.alloc_buffer((N, H + 2, W + 2, C))
    for i0, i1, i2, i3 in T.grid(N, H + 2, W + 2, C):
        with T.block("pad"):
            n, h, w, c = T.axis.remap("SSSS", [i0, i1, i2, i3])
            P[n, h, w, c] = T.if_then_else(
                1 <= h and h < H + 1 and 1 <= w and w < W + 1, A[n, h - 1, w - 1, c], T.float32(0)
            )
    for i0, i1, i2, i3, r0, r1, r2 in T.grid(N, H, W, K, 3, 3, C):
        with T.block("conv"):
            n, h, w, k, y, x, c = T.axis.remap("SSSSRRR", [i0, i1, i2, i3, r0, r1, r2])
            with T.init():
                B[n, h, w, k] = T.float32(0)
            B[n, h, w, k] = B[n, h, w, k] + P[n, h + y, w + x, c] * F[y, x, c, k]
"""
"""The convolution with all extents symbolic."""


def program(text: str) -> PrimFunc:
    """The function that script text states; indentation common to all lines is taken off."""
    return loads(dedent(text).strip() + "\n")


def facts(text: str) -> Facts:
    """The facts of the function that script text states."""
    return Facts.of(program(text))


def statuses(verdicts: Iterable[Verdict]) -> set[Status]:
    """The different answers."""
    return {verdict.status for verdict in verdicts}


def first(verdicts: Iterable[Verdict], status: Status, part: str = "") -> Verdict:
    """The first verdict with this status whose claim contains `part`."""
    return next(v for v in verdicts if v.status is status and part in v.claim.text)
