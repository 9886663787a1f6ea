"""Virtual threads have for themselves what is allocated inside the loop over them, as TVM lowers it."""

from __future__ import annotations

import pytest

import layoutproof as lp
from layoutproof.verify.verdict.verdict import Status

HEAD = """
@T.prim_func(s_tir=True)
def f(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
"""
INSIDE = """
    for v in T.thread_binding(2, thread="vthread.x"):
        with T.sblock("both"):
            S = T.sblock_alloc_buffer(({size},), "int32", scope="{scope}")
            for j in range(4):
                S[{stored}] = A[v * 4 + j]
            for j in range(4):
                B[v * 4 + j] = S[{read}]
"""
ONE_LOOP = """
    S = T.sblock_alloc_buffer(({size},), "int32", scope="{scope}")
    for v in T.thread_binding(2, thread="vthread.x"):
        for j in range(4):
            with T.sblock("fill"):
                x, y = T.axis.remap("SS", [v, j])
                S[{stored}] = A[x * 4 + y]
        for j in range(4):
            with T.sblock("use"):
                x, y = T.axis.remap("SS", [v, j])
                B[x * 4 + y] = S[{read}]
"""
TWO_LOOPS = """
    S = T.sblock_alloc_buffer(({size},), "int32", scope="{scope}")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for v in T.thread_binding(2, thread="vthread.x"):
            for j in range(4):
                with T.sblock("fill"):
                    x, y = T.axis.remap("SS", [v, j])
                    S[{stored}] = A[x * 4 + y]
        for v in T.thread_binding(2, thread="vthread.x"):
            for j in range(4):
                with T.sblock("use"):
                    x, y = T.axis.remap("SS", [v, j])
                    B[x * 4 + y] = S[{read}]
"""
# What TVM 0.27 makes of them: PlanAndUpdateBufferAllocationLocation, ConvertBlocksToOpaque, LowerOpaqueBlock,
# InjectVirtualThread and StmtSimplify.
LOWERED = """
    S = T.decl_buffer(({size},), "int32", scope="{scope}")
    for j in range(4):
        S[{first}] = A[j]
        S[{second}] = A[j + 4]
    for j in range(4):
        B[j] = S[{load}]
        B[j + 4] = S[{other}]
"""
COPIES = {"size": 8, "scope": "local", "first": "j", "second": "j + 4", "load": "3 - j", "other": "7 - j"}
ONE = {**COPIES, "size": 4, "second": "j", "load": "j", "other": "j"}
ACROSS = {**COPIES, "load": "j + 4", "other": "j"}


def status(kernel: str, lowered: dict[str, object], **places: object) -> Status:
    """Whether a kernel is proved to do what TVM lowered it to."""
    func = lp.loads(HEAD + kernel.format(**{"size": 8, **places}))
    return lp.compare(lp.loads(HEAD + LOWERED.format(**lowered)), func).status


@pytest.mark.parametrize("scope", ["shared", "local"])
def test_memory_inside_is_a_virtual_threads_own(scope: str) -> None:
    """Also where a block of the whole function allocates it, and only one loop touches it."""
    assert status(INSIDE, COPIES, scope=scope, stored="j", read="3 - j") is Status.PROVED
    assert status(ONE_LOOP, COPIES, scope=scope, stored="y", read="3 - y") is Status.PROVED


@pytest.mark.parametrize("scope", ["shared", "local"])
def test_nothing_crosses_in_it(scope: str) -> None:
    """What another virtual thread stored to its copy is not found."""
    assert status(INSIDE, ACROSS, scope=scope, stored="v * 4 + j", read="(1 - v) * 4 + j") is not Status.PROVED
    assert status(ONE_LOOP, ACROSS, scope=scope, stored="x * 4 + y", read="(1 - x) * 4 + y") is not Status.PROVED


def test_memory_outside_is_shared() -> None:
    """Where two loops touch it, virtual threads find in it what others stored."""
    assert status(TWO_LOOPS, ACROSS, scope="shared", stored="x * 4 + y", read="(1 - x) * 4 + y") is Status.PROVED
    # TVM's function copies the second half twice: a thread's own memory is one for all its virtual threads.
    copied = lp.loads(HEAD + "    for i in range(8):\n        B[i] = A[i]\n")
    kernel = lp.loads(HEAD + TWO_LOOPS.format(size=4, scope="local", stored="y", read="y"))
    assert lp.compare(copied, kernel).status is Status.UNKNOWN
    assert status(TWO_LOOPS, ONE, scope="local", stored="y", read="y", size=4) is not Status.PROVED
    apart = {"scope": "local", "stored": "x * 4 + y", "read": "x * 4 + 3 - y"}
    assert status(TWO_LOOPS, COPIES, **apart) is Status.PROVED
