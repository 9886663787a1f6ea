"""Pipelines of asynchronous copies against their loop: complete at the wait that covers them, or not proved."""

from __future__ import annotations

import pytest
from tests.shares import one_in

import layoutproof as lp
from layoutproof.lowering.compare.comparison import Comparison
from layoutproof.verify.verdict.verdict import Status

HEAD = "from tvm.script import tir as T\n\n@T.prim_func\ndef "


def compare(before: str, after: str, where: str | None = None) -> Comparison:
    """The comparison of two functions, given from their signatures on."""
    return lp.compare(lp.loads(HEAD + before), lp.loads(HEAD + after), where=where)


PLAIN = """plain(A: T.Buffer((16, 20), "float32"), C: T.Buffer((16, 20), "float32")):
    T.func_attr({"tirx.noalias": True})
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        for i in range(20):
            C[tx, i] = A[tx, i] * T.float32(2) + T.float32(1)
"""
PIPELINE = """pipeline(A: T.Buffer((16, 20), "float32"), C: T.Buffer((16, 20), "float32")):
    T.func_attr({"tirx.noalias": True})
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        B = T.decl_buffer((4, 16), "float32", scope="shared")
        for i in T.unroll(3):
            with T.attr(0, "async_commit_queue_scope", 0):
                with T.attr(0, "async_scope", 1):
                    B[i % 4, tx] = A[tx, i] * T.float32(2)
        for i in range(17):
            with T.attr(0, "async_commit_queue_scope", 0):
                with T.attr(0, "async_scope", 1):
                    B[(i + 3) % 4, tx] = A[tx, i + 3] * T.float32(2)
            with T.attr(0, "async_wait_queue_scope", 0):
                with T.attr(0, "async_wait_inflight_count", 3):
                    T.tvm_storage_sync("shared")
                    C[tx, i] = B[i % 4, tx] + T.float32(1)
        for i in T.unroll(3):
            with T.attr(0, "async_wait_queue_scope", 0):
                with T.attr(0, "async_wait_inflight_count", 2 - i):
                    T.tvm_storage_sync("shared")
                    C[tx, i + 17] = B[(i + 17) % 4, tx] + T.float32(1)
"""
BOTH = """both(A: T.Buffer((16, 20), "float32"), C: T.Buffer((16, 20), "float32")):
    T.func_attr({"tirx.noalias": True})
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        for i in range(20):
            C[tx, i] = A[tx, i] + A[15 - tx, i]
"""
# All threads read what all have copied, so that barriers have to follow the waits, and to come before the next copies.
GROUPS = """groups(A: T.Buffer((16, 20), "float32"), C: T.Buffer((16, 20), "float32")):
    T.func_attr({"tirx.noalias": True})
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        B = T.decl_buffer((2, 16), "float32", scope="shared")
        with T.attr(0, "async_scope", 1):
            B[0, tx] = A[tx, 0]
        T.ptx_commit_group()
        for i in range(19):
            with T.attr(0, "async_scope", 1):
                B[(i + 1) % 2, tx] = A[tx, i + 1]
            T.ptx_commit_group()
            T.ptx_wait_group(1)
            T.tvm_storage_sync("shared")
            C[tx, i] = B[i % 2, tx] + B[i % 2, 15 - tx]
            T.tvm_storage_sync("shared")
        T.ptx_wait_group(0)
        T.tvm_storage_sync("shared")
        C[tx, 19] = B[1, tx] + B[1, 15 - tx]
"""
ANY = """any(a: T.handle, c: T.handle):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    A = T.match_buffer(a, (n + 1, 32), "float32")
    C = T.match_buffer(c, (n + 1, 32), "float32")
    for tx in T.thread_binding(8, thread="threadIdx.x"):
        for i, j in T.grid(n + 1, 4):
            C[i, tx * 4 + j] = A[i, tx * 4 + j]
"""
ANY_GROUPS = """groups(a: T.handle, c: T.handle):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    A = T.match_buffer(a, (n + 1, 32), "float32")
    C = T.match_buffer(c, (n + 1, 32), "float32")
    for tx in T.thread_binding(8, thread="threadIdx.x"):
        B = T.decl_buffer((2, 4), "float32", scope="local")
        for j in range(4):
            with T.attr(0, "async_scope", 1):
                B[0, j] = A[0, tx * 4 + j]
        T.ptx_commit_group()
        for i in range(n):
            for j in range(4):
                with T.attr(0, "async_scope", 1):
                    B[(i + 1) % 2, j] = A[i + 1, tx * 4 + j]
            T.ptx_commit_group()
            T.ptx_wait_group(1)
            for j in range(4):
                C[i, tx * 4 + j] = B[i % 2, j]
        T.ptx_wait_group(0)
        for j in range(4):
            C[n, tx * 4 + j] = B[n % 2, j]
"""
TWO = """two(A: T.Buffer((8, 16), "float32"), D: T.Buffer((8, 16), "float32")):
    T.func_attr({"tirx.noalias": True})
    for tx in T.thread_binding(8, thread="threadIdx.x"):
        for i in range(16):
            D[tx, i] = A[tx, i] * T.float32(2)
"""
# What a copy of the second queue reads may be overwritten only when that copy is complete.
TWO_QUEUES = """queues(A: T.Buffer((8, 16), "float32"), D: T.Buffer((8, 16), "float32")):
    T.func_attr({"tirx.noalias": True})
    for tx in T.thread_binding(8, thread="threadIdx.x"):
        B = T.decl_buffer((2,), "float32", scope="local")
        C = T.decl_buffer((2,), "float32", scope="local")
        for i in range(16):
            with T.attr(0, "async_commit_queue_scope", 0):
                with T.attr(0, "async_scope", 1):
                    B[i % 2] = A[tx, i]
            with T.attr(0, "async_commit_queue_scope", 1):
                with T.attr(0, "async_wait_queue_scope", 0):
                    with T.attr(0, "async_wait_inflight_count", 0):
                        with T.attr(0, "async_scope", 1):
                            C[i % 2] = B[i % 2] * T.float32(2)
            with T.attr(0, "async_wait_queue_scope", 1):
                with T.attr(0, "async_wait_inflight_count", 0):
                    D[tx, i] = C[i % 2]
"""
# Four elements of 4 bytes by one instruction, out of a matrix and into one.
WHOLE = """whole(A: T.Buffer((8, 64), "float32"), C: T.Buffer((8, 64), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(8, 64):
        C[i, j] = A[i, 63 - j]
"""
INSTRUCTIONS = """instructions(A: T.Buffer((8, 64), "float32"), C: T.Buffer((8, 64), "float32")):
    T.func_attr({"tirx.noalias": True})
    tx = T.launch_thread("threadIdx.x", 16)
    S = T.decl_buffer((2, 64), "float32", scope="shared")
    T.ptx_cp_async("float32", S.data, tx * 4, A.data, tx * 4, 16)
    T.ptx_commit_group()
    for i in range(7):
        T.ptx_cp_async("float32", S.data, (i + 1) % 2 * 64 + tx * 4, A.data, (i + 1) * 64 + tx * 4, 16)
        T.ptx_commit_group()
        T.ptx_wait_group(1)
        T.tvm_storage_sync("shared")
        for j in range(4):
            C[i, tx * 4 + j] = S[i % 2, 63 - tx * 4 - j]
        T.tvm_storage_sync("shared")
    T.ptx_wait_group(0)
    T.tvm_storage_sync("shared")
    for j in range(4):
        C[7, tx * 4 + j] = S[1, 63 - tx * 4 - j]
"""
RAW = INSTRUCTIONS.replace('T.ptx_cp_async("float32", ', 'T.s_tir.cp_async_raw("float32", ').replace(
    "T.ptx_commit_group", "T.ptx.cp.async_.commit_group"
)
# One element by one instruction.
SINGLE = (
    INSTRUCTIONS.replace(", 16)\n", ", 4)\n").replace("tx * 4", "tx").replace('"threadIdx.x", 4)', '"threadIdx.x", 64)')
)
SINGLE = SINGLE.replace("range(4)", "range(1)")
RIGHT = {
    "copies of one element": (WHOLE, SINGLE),
    "copies by instructions": (WHOLE, INSTRUCTIONS),
    "copies by instructions of another name": (WHOLE, RAW.replace("T.ptx_wait_group", "T.ptx.cp.async_.wait_group")),
    "three stages ahead": (PLAIN, PIPELINE),
    "groups of PTX": (BOTH, GROUPS),
    "any number of iterations": (ANY, ANY_GROUPS),
    "two queues": (TWO, TWO_QUEUES),
    "more groups than needed": (BOTH, GROUPS.replace("wait_group(1)", "wait_group(0)")),
    "more versions than needed": (PLAIN, PIPELINE.replace("% 4", "% 5").replace("(4, 16)", "(5, 16)")),
    "a copy guarded by the thread": (
        BOTH,
        GROUPS.replace("B[(i + 1) % 2, tx] =", "if tx < 16:\n                    B[(i + 1) % 2, tx] ="),
    ),
}


@one_in(4)
@pytest.mark.parametrize("what", RIGHT)
def test_a_pipeline_is_its_loop(what: str) -> None:
    """Where each wait covers what is read after it."""
    found = compare(*RIGHT[what], where="n >= 0" if RIGHT[what][0] is ANY else None)
    assert found.status is Status.PROVED, found.verdicts[0].reason


TWICE = """twice(A: T.Buffer((2, 64), "float32"), C: T.Buffer((2, 64), "float32")):
    T.func_attr({"tirx.noalias": True})
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        with T.block("first"):
            S = T.alloc_buffer((64,), "float32", scope="shared")
            T.ptx_cp_async("float32", S.data, tx * 4, A.data, tx * 4, 16)
            T.ptx_commit_group()
            T.ptx_wait_group(0)
            T.tvm_storage_sync("shared")
            for j in range(4):
                C[0, tx * 4 + j] = S[tx * 4 + j]
        with T.block("second"):
            S = T.alloc_buffer((64,), "float32", scope="shared")
            T.ptx_cp_async("float32", S.data, tx * 4, A.data, 64 + tx * 4, 16)
            T.ptx_commit_group()
            T.ptx_wait_group(0)
            T.tvm_storage_sync("shared")
            for j in range(4):
                C[1, tx * 4 + j] = S[tx * 4 + j]
"""


def test_memories_of_one_name_are_apart() -> None:
    """An instruction names a memory by its data: that of the block around it."""
    plain = WHOLE.replace("(8, 64)", "(2, 64)").replace("63 - j", "j").replace("grid(8", "grid(2")
    assert compare(plain, TWICE).status is Status.PROVED
    early = TWICE.replace("C[0, tx * 4 + j] = S[tx * 4 + j]", "C[0, tx * 4 + j] = T.float32(0)")
    assert compare(plain, early).status in (Status.UNKNOWN, Status.REFUTED)


SYNC = '            T.tvm_storage_sync("shared")\n'
WRONG = {
    "an instruction that copies too little": (WHOLE, INSTRUCTIONS.replace(", 16)\n        T", ", 8)\n        T")),
    "an instruction that copies too much": (WHOLE, INSTRUCTIONS.replace(", 16)\n        T", ", 32)\n        T")),
    "an instruction of another type": (WHOLE, INSTRUCTIONS.replace('cp_async("float32"', 'cp_async("float16"')),
    "an instruction at the place of another row": (WHOLE, INSTRUCTIONS.replace("(i + 1) * 64", "(i + 1) * 32")),
    "an instruction that is not aligned": (WHOLE, INSTRUCTIONS.replace("A.data, tx * 4", "A.data, tx * 4 + 1")),
    "instructions whose wait leaves two": (WHOLE, INSTRUCTIONS.replace("wait_group(1)", "wait_group(2)")),
    "instructions to one row": (WHOLE, INSTRUCTIONS.replace("(i + 1) % 2 * 64", "0").replace("S[i % 2,", "S[0,")),
    "the wait leaves one more": (PLAIN, PIPELINE.replace('inflight_count", 3', 'inflight_count", 4')),
    "the last waits leave one more": (PLAIN, PIPELINE.replace("2 - i", "3 - i")),
    "a version too few": (PLAIN, PIPELINE.replace("% 4", "% 3").replace("(4, 16)", "(3, 16)")),
    "the version of the iteration before": (PLAIN, PIPELINE.replace("B[i % 4, tx] +", "B[(i + 3) % 4, tx] +")),
    "a stage ahead": (PLAIN, PIPELINE.replace("A[tx, i + 3]", "A[tx, i + 2]")),
    "another queue": (PLAIN, PIPELINE.replace('"async_wait_queue_scope", 0', '"async_wait_queue_scope", 1')),
    "no wait in the loop": (BOTH, GROUPS.replace("            T.ptx_wait_group(1)\n", "")),
    "no wait at the end": (BOTH, GROUPS.replace("        T.ptx_wait_group(0)\n", "")),
    "a wait that leaves two": (BOTH, GROUPS.replace("wait_group(1)", "wait_group(2)")),
    "no barrier after the wait": (BOTH, GROUPS.replace(SYNC, "", 1)),
    "a barrier before the wait": (
        BOTH,
        GROUPS.replace(f"            T.ptx_wait_group(1)\n{SYNC}", f"{SYNC}            T.ptx_wait_group(1)\n"),
    ),
    "no barrier before the next copy": (BOTH, GROUPS.replace(f"15 - tx]\n{SYNC}", "15 - tx]\n")),
    "one version": (BOTH, GROUPS.replace("% 2", "% 1").replace("B[1,", "B[0,")),
    "groups that are not closed": (BOTH, GROUPS.replace("        T.ptx_commit_group()\n", "")),
    "copies without a group": (BOTH, GROUPS.replace("            T.ptx_commit_group()\n", "")),
    "one version for any number": (ANY, ANY_GROUPS.replace("% 2", "% 1")),
    "a wait that leaves two of any number": (ANY, ANY_GROUPS.replace("wait_group(1)", "wait_group(2)")),
    "the source is written too early": (
        TWO,
        TWO_QUEUES.replace('count", 0):\n                    D', 'count", 1):\n                    D'),
    ),
    "a source with one version": (
        TWO,
        TWO_QUEUES.replace("B[i % 2]", "B[0]").replace(
            'count", 0):\n                    D', 'count", 1):\n                    D'
        ),
    ),
    "two stores of one group to one cell": (
        BOTH,
        GROUPS.replace(
            "                B[(i + 1) % 2, tx] = A[tx, i + 1]\n",
            "                B[(i + 1) % 2, tx] = A[tx, i]\n                B[(i + 1) % 2, tx] = A[tx, i + 1]\n",
        ),
    ),
    "a loop of one group to one cell": (
        BOTH,
        GROUPS.replace(
            "                B[(i + 1) % 2, tx] = A[tx, i + 1]\n",
            "                for k in range(2):\n                    B[(i + 1) % 2, tx] = A[tx, i + k]\n",
        ),
    ),
    "a commit that depends on the thread": (
        BOTH,
        GROUPS.replace(
            "            T.ptx_commit_group()", "            if tx < 8:\n                T.ptx_commit_group()"
        ),
    ),
    "a wait that depends on the thread": (BOTH, GROUPS.replace("wait_group(1)", "wait_group(tx % 2)")),
    "a number below zero": (PLAIN, PIPELINE.replace("2 - i", "1 - i")),
    "a copy to memory of the grid": (
        TWO,
        """grid(A: T.Buffer((8, 16), "float32"), D: T.Buffer((8, 16), "float32")):
    T.func_attr({"tirx.noalias": True})
    for tx in T.thread_binding(8, thread="threadIdx.x"):
        for i in range(16):
            with T.attr(0, "async_scope", 1):
                D[tx, i] = A[tx, i] * T.float32(2)
""",
    ),
}


@one_in(16)
@pytest.mark.parametrize("what", WRONG)
def test_a_copy_that_may_be_under_way_is_not_taken_to_be_done(what: str) -> None:
    """Each change lets an access meet a copy that no wait covers, or alters a result."""
    before, after = WRONG[what]
    assert after not in [right for _, right in RIGHT.values()]
    where = "n >= 0" if before is ANY else None
    assert compare(before, after, where).status in (Status.UNKNOWN, Status.REFUTED)
