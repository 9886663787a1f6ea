"""Floats whose bits somebody sees: one NaN is not like another there."""

from __future__ import annotations

import pytest

from layoutproof.ir.notations.rewrite_text import parse_rewrite
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status

TEXT = """
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "int32")):
    T.func_attr({{"tirx.noalias": True}})
    Q = T.alloc_buffer((8,), "float32")
    P = T.alloc_buffer((8,), "float32")
    V = T.Buffer((8,), "int32", data={seen}.data)
    for i in range(8):
        Q[i] = {before}
        P[i] = Q[i]
        B[i] = V[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "int32")):
    T.func_attr({{"tirx.noalias": True}})
    Q = T.alloc_buffer((8,), "float32")
    P = T.alloc_buffer((8,), "float32")
    V = T.Buffer((8,), "int32", data={seen}.data)
    for i in range({extent}):
        Q[i] = {after}
        P[i] = Q[i]
        B[i] = V[i]
"""


def status(before: str, after: str, seen: str, extent: str = "8") -> Status:
    """What the checker says of two values that are stored and seen as integers, by themselves or copied."""
    text = TEXT.format(before=before, after=after, seen=seen, extent=extent)
    return worst(v.status for v in prove_rewrite(parse_rewrite(text)).verdicts)


@pytest.mark.parametrize("seen", ["P", "Q"])
@pytest.mark.parametrize(
    ("before", "after"),
    [("A[i] + A[7 - i]", "A[7 - i] + A[i]"), ("T.if_then_else(A[i] == A[i], A[i], T.float32('nan'))", "A[i]")],
)
def test_another_nan_is_another_value(before: str, after: str, seen: str) -> None:
    """What gives one number, and may give two NaN, is not the same."""
    assert status(before, after, seen) is Status.UNKNOWN


@pytest.mark.parametrize("seen", ["P", "Q"])
def test_the_same_operations_give_the_same_bits(seen: str) -> None:
    """Index arithmetic may be written in another way."""
    assert status("A[i] * A[7 - i]", "A[i + 1 - 1] * A[6 - i + 1]", seen, "4 + 4") is Status.PROVED
