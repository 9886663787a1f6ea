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
STATEMENTS = """
    S = T.decl_buffer(({size},), "int32", scope="{scope}")
    v = T.launch_thread("vthread.x", 2)
    for j in range(4):
        S[{stored}] = A[v * 4 + j]
    {barrier}
    for j in range(4):
        B[v * 4 + j] = S[{read}]
"""
# What TVM 0.27 makes of them: PlanAndUpdateBufferAllocationLocation, UnifyThreadBinding, LowerOpaqueBlock,
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
ACROSS = {**COPIES, "load": "j + 4", "other": "j"}


def status(kernel: str, lowered: dict[str, object], **places: object) -> Status:
    """Whether a kernel is proved to do what TVM lowered it to."""
    func = lp.loads(HEAD + kernel.format(**{"size": 8, **places}))
    return lp.compare(lp.loads(HEAD + LOWERED.format(**lowered)), func).status


@pytest.mark.parametrize("scope", ["shared", "local"])
def test_memory_of_blocks_is_a_virtual_threads_own(scope: str) -> None:
    """Whatever its scope, and wherever the block that allocates it is."""
    assert status(INSIDE, COPIES, scope=scope, stored="j", read="3 - j") is Status.PROVED
    for text in (ONE_LOOP, TWO_LOOPS):
        assert status(text, COPIES, scope=scope, stored="y", read="3 - y") is Status.PROVED


@pytest.mark.parametrize("scope", ["shared", "local"])
def test_nothing_crosses_in_it(scope: str) -> None:
    """What another virtual thread stored to its copy is not found."""
    assert status(INSIDE, ACROSS, scope=scope, stored="v * 4 + j", read="(1 - v) * 4 + j") is not Status.PROVED
    for text in (ONE_LOOP, TWO_LOOPS):
        assert status(text, ACROSS, scope=scope, stored="x * 4 + y", read="(1 - x) * 4 + y") is not Status.PROVED


def test_memory_that_a_statement_allocates_outside_is_shared() -> None:
    """Virtual threads find in it what others stored before a barrier."""
    sync = {"scope": "shared", "barrier": 'T.tvm_storage_sync("shared")'}
    assert status(STATEMENTS, ACROSS, **sync, stored="v * 4 + j", read="(1 - v) * 4 + j") is Status.PROVED
    assert status(STATEMENTS, COPIES, **sync, stored="j", read="3 - j") is not Status.PROVED
    # In memory of a thread they may not meet: no barrier is about it.
    own = {"scope": "local", "barrier": "T.evaluate(0)"}
    assert status(STATEMENTS, COPIES, **own, stored="j", read="3 - j") is Status.UNKNOWN
    assert status(STATEMENTS, COPIES, **own, stored="v * 4 + j", read="v * 4 + 3 - j") is Status.PROVED
