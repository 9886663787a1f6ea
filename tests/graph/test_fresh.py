"""Results of calls are fresh memory: functions that read them first are found out."""

from __future__ import annotations

import pytest

from layoutproof.graph import codes
from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.fresh import prove_fresh
from layoutproof.graph.operators.convolution import conv2d
from layoutproof.graph.operators.normalise import softmax
from layoutproof.graph.signature import signature_of
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script import loads
from layoutproof.verify.verdict import Status


def steps(body: str) -> PrimFunc:
    """A function from `A` to `B` of eight elements each."""
    return loads(f'@T.prim_func\ndef f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):\n{body}\n', "f.py")


@pytest.mark.parametrize("func", [conv2d((1, 2, 4, 4), (2, 2, 3, 3)), softmax((2, 4))], ids=lambda func: func.name)
def test_operators_of_the_library_start_their_results(func: PrimFunc) -> None:
    """Reductions begin with their init, so nothing needs to be asked."""
    verdict = prove_fresh(func)
    assert (verdict.status, verdict.engine) == (Status.PROVED, "structure")


def test_a_result_that_was_written_may_be_read() -> None:
    """A second nest may use what a first one stored."""
    func = steps("    for i in range(8):\n        B[i] = A[i]\n    for i in range(8):\n        B[i] = B[i] + A[7 - i]")
    assert prove_fresh(func).status is Status.PROVED


@pytest.mark.parametrize(
    "body",
    [
        "    for i in range(8):\n        B[i] = B[i] + A[i]",
        "    for i in range(7):\n        B[i] = A[i]\n    for i in range(8):\n        B[i] = B[i] + A[i]",
    ],
)
def test_a_result_that_is_read_first_is_not_fresh(body: str) -> None:
    """Adding to what stands in a result, all of it or one element, is not proved to be fresh."""
    func = steps(body)
    verdict = prove_fresh(func)
    assert verdict.status is not Status.PROVED and "before it is written" in verdict.claim
    g = GraphBuilder()
    with pytest.raises(LayoutproofError, match=codes.FUNCTION_FORM):
        g.build(*g.call(func, g.input("x", (8,))))


REDUCTION = """
@T.prim_func
def f(X: T.Buffer((4, 3), "float32"), Y: T.Buffer((4,), "float32")):
    for i, j in T.grid(4, 3):
        with T.block("total"):
            v, r = T.axis.remap("SR", [i, j])
            with T.init():
                {}
            Y[v] = Y[v] + X[v, r]
"""


@pytest.mark.parametrize(
    "init",
    [
        "if v > 1:\n                    Y[v] = T.float32(0)",
        "Y[v] = Y[v] + T.float32(1)",
        "for q in range(0):\n                    Y[v] = T.float32(0)",
    ],
    ids=["under a guard", "of what stood there", "in a loop that never runs"],
)
def test_an_init_that_starts_nothing_is_seen_through(init: str) -> None:
    """An init counts only where it stores the element whatever holds, and what it reads itself comes before it."""
    assert prove_fresh(loads(REDUCTION.format(init), "f.py")).status is not Status.PROVED


@pytest.mark.parametrize(
    "view",
    [
        '    Z = T.decl_buffer((8,), "float32", data=B.data)\n    for i in range(8):\n        B[i] = A[i] + Z[i]',
        '    for i in range(8):\n        with T.block("b"):\n            v = T.axis.spatial(8, i)\n'
        '            M = T.match_buffer(A[v : v + 1], (1,), "float32", offset_factor=1)\n'
        "            B[v] = A[v]\n            M[0] = T.float32(3)",
    ],
    ids=["of a result, read", "of an operand, written"],
)
def test_views_of_parameters_are_refused(view: str) -> None:
    """What goes through a view would be seen by nobody who asks which parameters are read and written."""
    with pytest.raises(LayoutproofError, match=f"{codes.FUNCTION_FORM}.*a view of the parameter"):
        signature_of(steps(view))
