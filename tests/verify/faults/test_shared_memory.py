"""Shared memory of kernels within a limit, for all sizes, against the number of bytes at each size."""

from __future__ import annotations

import pytest
from tests.lowering.kernels.gpu_runs import RUNS

import layoutproof as lp
from layoutproof.verify.faults.shared_memory import prove_shared_fits
from layoutproof.verify.verdict.verdict import Status

KERNELS = """from tvm.script import tir as T

@T.prim_func
def f(a: T.handle, b: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "int16")
    B = T.match_buffer(b, (n, m), "int16")
    T.func_attr({"tirx.noalias": True})
    T.evaluate(T.assume(m <= 100))
    for i in T.thread_binding(n, thread="blockIdx.x"):
        S = T.decl_buffer((m, 2), "int16", scope="shared")
        L = T.decl_buffer((m,), "int64", scope="local")
        D = T.decl_buffer((3,), "int64", scope="shared.dyn")
        for k in T.thread_binding(m, thread="threadIdx.x"):
            S[k, 0] = A[i, k]
            D[0] = T.int64(1)
            L[k] = T.int64(0)
            B[i, k] = S[k, 0]
    for i in T.thread_binding(n, thread="blockIdx.x"):
        S2 = T.decl_buffer((n, m), "int16", scope="shared")
        S2[0, 0] = A[i, 0]
"""


def statuses(limit: int) -> list[Status]:
    """The verdicts on both kernels."""
    return [verdict.status for verdict in prove_shared_fits(lp.loads(KERNELS), limit)]


def test_each_kernel_has_its_own_memory() -> None:
    """4*m + 24 bytes with m at most 100: the bound is exact; n*m*2 has none. Memory of a thread does not count."""
    assert statuses(424) == [Status.PROVED, Status.REFUTED]
    assert statuses(423) == [Status.REFUTED, Status.REFUTED]


@pytest.mark.parametrize("limit", [0, 24, 100, 423])
def test_a_counterexample_takes_more(limit: int) -> None:
    """Its sizes, put into the sum, give the bytes that it states, within what is assumed."""
    verdict = prove_shared_fits(lp.loads(KERNELS), limit)[0]
    assert verdict.counterexample is not None
    values = verdict.counterexample["values"]
    assert verdict.counterexample["bytes"] == 4 * values["m"] + 24 > limit and 0 <= values["m"] <= 100


def test_memory_that_is_larger_than_its_extents_is_left_open() -> None:
    """Rows that are further apart than they are long."""
    text = KERNELS.replace('T.decl_buffer((m, 2), "int16",', 'T.decl_buffer((m, 2), "int16", strides=(300, 1),')
    verdict, _ = prove_shared_fits(lp.loads(text), 424)
    assert verdict.status is Status.UNKNOWN and "S has strides or an offset" in str(verdict.reason)


def test_memory_that_changes_inside_a_kernel_is_left_open() -> None:
    """What depends on a loop has no one size."""
    text = KERNELS.replace("T.decl_buffer((m, 2)", "T.decl_buffer((m, i + 1)")
    (verdict, _) = prove_shared_fits(lp.loads(text), 424)
    assert verdict.status is Status.UNKNOWN and "depends on blockIdx_x" in str(verdict.reason)


def test_virtual_threads_have_copies_of_their_own() -> None:
    """Of what is allocated inside of them, each has one, and all of them count."""
    text = """from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for v in T.thread_binding(2, thread="vthread.x"):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("k"):
                S = T.alloc_buffer((8,), "int32", scope="shared")
                S[t] = A[v * 8 + t]
                T.tvm_storage_sync("shared")
                B[v * 8 + t] = S[7 - t]
"""
    for limit, status in ((64, Status.PROVED), (63, Status.REFUTED)):
        assert [verdict.status for verdict in prove_shared_fits(lp.loads(text), limit)] == [status]


def test_a_schedule_without_kernels_shares_nothing() -> None:
    """No kernel, no verdict; of the transpose, with rows of 33, the bytes are those of its tile."""
    schedule = RUNS["transpose"]().schedule()
    schedule.storage_align("A_shared", 0, 32, 1)
    for limit, status in ((4224, Status.PROVED), (4223, Status.REFUTED)):
        assert [verdict.status for verdict in schedule.prove_shared_memory(limit)] == [status]
    assert lp.Schedule(schedule.original).prove_shared_memory(0) == ()
    with pytest.raises(lp.LayoutproofError, match="a number of bytes"):
        schedule.prove_shared_memory("48 KB")  # type: ignore[arg-type]  # what a user may write


def test_a_negative_extent_takes_nothing_away() -> None:
    """The bytes of one buffer are not fewer because another one has an extent below zero, which no text rules out."""
    text = KERNELS.replace("(3,)", "(103 - m,)").replace("T.evaluate(T.assume(m <= 100))", "ASSUMED")
    text = text.replace("(m, 2)", "(m, 4)")
    for assumed, expected in (("T.evaluate(T.assume(m <= 103))", Status.PROVED), ("pass", Status.UNKNOWN)):
        verdict, _ = prove_shared_fits(lp.loads(text.replace("ASSUMED", assumed)), 824)
        assert verdict.status is expected
