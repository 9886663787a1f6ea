"""An infinity that the old program writes down, and passes on, is none that it computes: no fast-math assumption leaves
it out.
"""

from __future__ import annotations

import pytest

from layoutproof.ir.notations.rewrite_text import parse_rewrite
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status

KEPT = """\
# functions: main, main
# theta: 0 -> 0: lambda: []
# theta: 1 -> 1: lambda i: [i]
# theta: 2 -> 2: lambda: []
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4,), "float32"), D: T.Buffer((4,), "int32"), B: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    M = T.sblock_alloc_buffer((1,))
    M[0] = T.float32("-inf")
    for i in range(4):
        UPDATE
    B[0] = T.Select(M[0] > T.float32(0), M[0], T.float32(0))


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4,), "float32"), D: T.Buffer((4,), "int32"), B: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    M = T.sblock_alloc_buffer((1,))
    M[0] = T.float32("-inf")
    for i in range(4):
        UPDATE
    B[0] = T.Select(M[0] > T.float32(0), M[0], M[0] - M[0])
"""
CHOSEN = """\
# functions: main, main
# theta: 0 -> 0: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4,), "float32"), D: T.Buffer((4,), "int32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(4):
        B[i] = T.Select(D[i] > 0, A[i], T.float32("-inf"))


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4,), "float32"), D: T.Buffer((4,), "int32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(4):
        B[i] = T.Select(D[i] > 0, A[i], T.float32(1))
"""
SOMETIMES = "if D[i] > 0:\n            M[0] = T.max(A[i], M[0])"
ALWAYS = "M[0] = T.max(A[i], M[0])"


@pytest.mark.parametrize("text", [KEPT.replace("UPDATE", SOMETIMES), CHOSEN], ids=["kept", "chosen"])
def test_a_literal_that_is_passed_on(text: str) -> None:
    """Where no element counts, the accumulator keeps its -inf, and `M - M` is NaN; where a choice picks -inf, -inf is
    stored: refuted.
    """
    assert worst(v.status for v in check_rewrite(parse_rewrite(text, "passed"))) is Status.REFUTED


def test_what_an_operation_yields() -> None:
    """A maximum that is always taken is computed, whatever it started from: there `nnan ninf` help."""
    verdicts = check_rewrite(parse_rewrite(KEPT.replace("UPDATE", ALWAYS), "computed"))
    assert worst(v.status for v in verdicts) is Status.PROVED
    assert {name for v in verdicts for name in v.strictness} == {"nnan", "ninf"}
