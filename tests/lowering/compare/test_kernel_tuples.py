"""Reductions over threads of several values at once."""

from __future__ import annotations

import pytest
from tests.shares import one_in

import layoutproof as lp
from layoutproof.verify.verdict.verdict import Status

HEAD = "from tvm.script import tirx as T\n@T.prim_func\n"
SUMS = HEAD + (
    'def f(A: T.Buffer((4, 64), "float32"), S: T.Buffer((4,), "float32"), Q: T.Buffer((4,), "float32")):\n'
    "    for i, ko in T.grid(4, 2):\n"
    '        for kt in T.thread_binding(32, thread="threadIdx.x"):\n'
    '            with T.sblock("sums"):\n'
    "                vi = T.axis.spatial(4, i)\n"
    "                vk = T.axis.reduce(64, ko * 32 + kt)\n"
    "                with T.init():\n"
    "                    S[vi] = T.float32(0)\n"
    "                    Q[vi] = T.float32(0)\n"
    "                v0: T.let[T.float32] = S[vi] + A[vi, vk]\n"
    "                v1: T.let[T.float32] = Q[vi] + A[vi, vk] * A[vi, vk]\n"
    "                S[vi] = v0\n"
    "                Q[vi] = v1\n"
)
LOWERED = HEAD + (
    'def f(A: T.Buffer((4, 64), "float32"), S: T.Buffer((4,), "float32"), Q: T.Buffer((4,), "float32")):\n'
    '    CS = T.sblock_alloc_buffer([1], dtype="float32", scope="local")\n'
    '    CQ = T.sblock_alloc_buffer([1], dtype="float32", scope="local")\n'
    '    IS = T.sblock_alloc_buffer([1], dtype="float32", scope="local")\n'
    '    IQ = T.sblock_alloc_buffer([1], dtype="float32", scope="local")\n'
    "    for i in range(4):\n"
    '        for kt in T.thread_binding(32, thread="threadIdx.x"):\n'
    "            IS[0] = T.float32(0)\n"
    "            IQ[0] = T.float32(0)\n"
    "            for ko in range(2):\n"
    '                with T.sblock("in_thread"):\n'
    "                    vi = T.axis.spatial(4, i)\n"
    "                    vk = T.axis.reduce(64, ko * 32 + kt)\n"
    "                    v0: T.let[T.float32] = IS[0] + A[vi, vk]\n"
    "                    v1: T.let[T.float32] = IQ[0] + A[vi, vk] * A[vi, vk]\n"
    "                    IS[0] = v0\n"
    "                    IQ[0] = v1\n"
    "            with T.attr(T.comm_reducer(lambda x0, x1, y0, y1: (x0 + y0, x1 + y1), [T.float32(0), T.float32(0)]), "
    '"reduce_scope", T.int32(0)):\n'
    "                T.evaluate(T.tvm_thread_allreduce(T.uint32(2), IS[0], IQ[0], True, CS[0], CQ[0], kt, "
    'dtype="handle"))\n'
    "            if kt == 0:\n"
    "                S[i] = CS[0]\n"
    "                Q[i] = CQ[0]\n"
)
WRONG = (
    ("CS[0], CQ[0], kt", "CQ[0], CS[0], kt"),
    ("(x0 + y0, x1 + y1)", "(x0 + y0, x1 * y1)"),
    ("(x0 + y0, x1 + y1)", "(x0 + y0, x1 + y0)"),
    ("[T.float32(0), T.float32(0)]", "[T.float32(0), T.float32(1)]"),
    ("IS[0], IQ[0], True", "IQ[0], IS[0], True"),
    ("IS[0], IQ[0], True", "IS[0], IQ[0], kt < 31"),
    ("IQ[0] + A[vi, vk] * A[vi, vk]", "IQ[0] + A[vi, vk] * IS[0]"),
    ("Q[i] = CQ[0]", "Q[i] = CS[0]"),
)


def test_two_sums_at_once() -> None:
    """A sum and a sum of squares, which threads join as pairs: the partial sums are followed for each."""
    found = lp.compare(lp.loads(SUMS), lp.loads(LOWERED))
    assert (found.status, found.strictness) == (Status.PROVED, ("nsz", "reassoc"))


@one_in(4)
@pytest.mark.parametrize(("old", "new"), WRONG)
def test_pairs_that_are_mixed_up(old: str, new: str) -> None:
    """Results exchanged, another operator, a start that counts, values of the other sum, and a thread left out."""
    assert old in LOWERED
    assert lp.compare(lp.loads(SUMS), lp.loads(LOWERED.replace(old, new))).status is Status.REFUTED


def joined(value: str, *, by_threads: bool) -> lp.PrimFunc:
    """A reduction by a let, over threads or in the order of the indices."""
    loop = 'T.thread_binding(32, thread="threadIdx.x")' if by_threads else "range(32)"
    return lp.loads(
        HEAD + 'def f(A: T.Buffer((32,), "int32"), C: T.Buffer((1,), "int32")):\n'
        f"    for k in {loop}:\n"
        '        with T.sblock("join"):\n'
        "            vk = T.axis.reduce(32, k)\n"
        "            with T.init():\n"
        "                C[0] = 0\n"
        f"            v: T.let[T.int32] = {value}\n"
        "            C[0] = v\n"
    )


def test_a_let_does_not_hide_how_threads_join() -> None:
    """What a let computes is joined like what stands in the store: a sum is one, anything else is not known."""
    for value, status in (("C[0] + A[vk]", Status.PROVED), ("C[0] * 2 + A[vk]", Status.UNKNOWN)):
        found = lp.compare(joined(value, by_threads=False), joined(value, by_threads=True))
        assert found.status is status, value
