"""Kernels that sum in several stages, over lanes, over a thread's own elements and over threads."""

from __future__ import annotations

import numpy as np
import pytest
from tests.shares import one_in

import layoutproof as lp
from layoutproof.ir.interp.run import run
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.compare.comparison import Comparison
from layoutproof.lowering.compare.kernels import with_split_loops
from layoutproof.verify.verdict.verdict import Status

HEAD = "from tvm.script import tir as T\n\n@T.prim_func\ndef "

PLAIN = """plain(q: T.handle, X: T.Buffer((4, 64), "float16"), y: T.handle):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    Q = T.match_buffer(q, (4, n, 8), "uint32")
    Y = T.match_buffer(y, (4, n), "float16")
    D = T.alloc_buffer((4, n, 64), "float16")
    R = T.alloc_buffer((4, n), "float16")
    for h, i, k in T.grid(4, n, 64):
        D[h, i, k] = T.Cast("float16", (Q[h, i, k // 8] >> T.Cast("uint32", k % 8 * 4)) & T.uint32(15)) - T.float16(7)
    for h, i in T.grid(4, n):
        R[h, i] = T.float16(0)
        for k in range(64):
            R[h, i] = R[h, i] + X[h, k] * D[h, i, k]
    for h, i in T.grid(4, n):
        Y[h, i] = T.max(R[h, i] * T.float16(0.5), T.float16(-100))
"""
KERNEL = """kernel(q: T.handle, X: T.Buffer((4, 64), "float16"), y: T.handle):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    Q = T.match_buffer(q, (4, n, 8), "uint32")
    Y = T.match_buffer(y, (4, n), "float16")
    bx = T.launch_thread("blockIdx.x", n * 4)
    S = T.decl_buffer((64,), "float16", scope="shared")
    M = T.decl_buffer((8,), "float16", scope="shared")
    tx = T.launch_thread("threadIdx.x", 8)
    P = T.decl_buffer((2,), "float16", scope="local")
    L = T.decl_buffer((1,), "float16", scope="local")
    R = T.decl_buffer((1,), "float16", scope="local")
    for v in T.vectorized(8):
        S[tx * 8 + v] = X[bx // n, tx * 8 + v]
    T.tvm_storage_sync("shared")
    for v in T.vectorized(2):
        P[v] = T.float16(0)
    for o, v in T.grid(4, 2):
        P[v] = P[v] + S[o * 16 + tx * 2 + v] * (T.Cast("float16", (Q[bx // n, bx % n, (o * 16 + tx * 2 + v) // 8]
            >> T.Cast("uint32", (o * 16 + tx * 2 + v) % 8 * 4)) & T.uint32(15)) - T.float16(7))
    L[0] = T.float16(0)
    for v in range(2):
        L[0] = L[0] + P[v]
    M[tx] = L[0]
    T.tvm_storage_sync("shared")
    if tx == 0:
        R[0] = T.float16(0)
        for t in range(8):
            R[0] = R[0] + M[t]
        Y[bx // n, bx % n] = T.max(R[0] * T.float16(0.5), T.float16(-100))
"""


def compare(before: str, after: str) -> Comparison:
    """The comparison of two functions, given from their signatures on."""
    return lp.compare(lp.loads(HEAD + before), lp.loads(HEAD + after))


def test_a_product_with_decoded_weights_in_three_stages_for_all_sizes() -> None:
    """Blocks count rows of a matrix of any width; what is assumed is stated."""
    found = compare(PLAIN, KERNEL)
    assert found.status is Status.PROVED
    assert set(found.strictness) == {"reassoc"}
    assert "precondition: `n*4` does not overflow int32" in str(found.verdicts[0].reason)


RESET = "    for v in T.vectorized(2):\n        P[v] = T.float16(0)\n"
LOOPS = "    for o, v in T.grid(4, 2):\n"
WRONG = {
    "a lane is lost": ("    for v in range(2):", "    for v in range(1):"),
    "lanes do not start at zero": ("P[v] = T.float16(0)", "P[v] = T.float16(1)"),
    "lanes do not start": (RESET, ""),
    "lanes start in the loop": (LOOPS, f"{LOOPS}        if v == 0:\n            P[0] = T.float16(0)\n"),
    "a thread is lost": ("for t in range(8)", "for t in range(7)"),
    "a thread is counted twice": ("+ M[t]", "+ M[t // 2]"),
    "a thread's own sum does not start at zero": ("L[0] = T.float16(0)", "L[0] = P[0]"),
    "the last barrier is missing": ('M[tx] = L[0]\n    T.tvm_storage_sync("shared")\n', "M[tx] = L[0]\n"),
    "the next half byte": ("% 8 * 4)) & T", "% 7 * 4)) & T"),
    "another row": ("X[bx // n,", "X[bx % 4,"),
    "rows and columns of blocks exchanged": ("Q[bx // n, bx % n,", "Q[bx % 4, bx // 4,"),
    "too few blocks": ('"blockIdx.x", n * 4', '"blockIdx.x", n * 3'),
    "a block too many": ('"blockIdx.x", n * 4', '"blockIdx.x", n * 4 + 1'),
    "the last step is missing": ("T.grid(4, 2)", "T.grid(3, 2)"),
}  # fmt: skip


@one_in(24)
@pytest.mark.parametrize("what", WRONG)
def test_wrong_sums_are_not_proved(what: str) -> None:
    """Each change alters a result, or is a fault."""
    wrong = KERNEL.replace(*WRONG[what])
    assert wrong != KERNEL
    assert compare(PLAIN, wrong).status in (Status.REFUTED, Status.UNKNOWN)


LOOP = """loop(a: T.handle, b: T.handle):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    A = T.match_buffer(a, (3, n), "float32")
    B = T.match_buffer(b, (n, 3), "float32")
    for v in range(n * 3):
        for u in range(1):
            B[(v + u) % n, v // n] = A[v // n, v % n] + T.float32(1)
"""


@pytest.mark.parametrize("n", [0, 1, 4])
def test_split_loops_do_the_same(n: int) -> None:
    """Also where there is nothing to do."""
    func = loads(HEAD + LOOP)
    split, extents = with_split_loops(func)
    assert (" // " not in print_func(split), [str(e.dtype) for e in extents]) == (True, ["int32"])
    a = np.arange(3 * n, dtype=np.float32).reshape(3, n)
    first, second = (run(each, [a, np.zeros((n, 3), np.float32)]).arrays["B"] for each in (func, split))
    assert np.array_equal(first, second)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("n * 3", "n * n"),
        ("n * 3", "n * -3"),
        ("v // n] =", "(v + 1) // n] ="),
        ("v // n] =", "v // 4] ="),
        ("+ T.float32(1)", '+ T.Cast("float32", v)'),
        ("range(n * 3)", "T.serial(1, n * 3)"),
        ("range(n * 3)", "T.unroll(n * 3)"),
        ("(v + u) %", "(v + v) %"),
    ],
)
def test_other_loops_are_left_alone(old: str, new: str) -> None:
    """Two negative sizes have a positive product, and an index that is used otherwise is no pair."""
    assert old in LOOP
    func = loads(HEAD + LOOP.replace(old, new))
    assert with_split_loops(func) == (func, ())


JOINED = """joined(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32"), C: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for t in LOOP:
        with T.block("sum"):
            k = T.axis.reduce(32, t)
            with T.init():
                C[0] = 0
            C[0] = C[0] + A[k]
"""
THREADS = 'T.thread_binding(32, thread="threadIdx.x")'
UPDATE = "            C[0] = C[0] + A[k]\n"


def joined(update: str, place: str) -> Comparison:
    """A loop that joins to one cell, and threads that do it."""
    text = HEAD + JOINED.replace(UPDATE, update).replace("(32, t)", f"(32, {place})")
    return lp.compare(*(loads(text.replace("LOOP", loop)) for loop in ("range(32)", THREADS)))


@pytest.mark.parametrize(
    "update", [UPDATE, f"            if A[k] < 5:\n    {UPDATE}", UPDATE.replace("+ A", "+ 2 * A")]
)
def test_threads_join_by_one_operator(update: str) -> None:
    """The order of threads is not seen."""
    assert joined(update, "t").status is Status.PROVED


@pytest.mark.parametrize(
    "update",
    [
        f"            if C[0] < 5:\n    {UPDATE}",
        f"            for j in range(C[0] % 4):\n    {UPDATE}",
        UPDATE + "            C[0] = T.max(C[0], B[k])\n",
        "            C[0] = C[0] * 2\n" + UPDATE,
        "            if k == 5:\n                C[0] = 0\n" + UPDATE,
        f"            if k < 16:\n    {UPDATE}            else:\n                C[0] = T.min(C[0], A[k])\n",
        '            with T.block("inner"):\n                q = T.axis.reduce(32, k)\n'
        f"                with T.init():\n                    C[0] = 7\n    {UPDATE.replace('A[k]', 'A[q]')}",
    ],
)
def test_the_order_of_threads_may_not_be_seen(update: str) -> None:
    """Conditions on what was joined, several operators, and starting anew have a result that depends on it."""
    assert joined(update, "t").status is Status.UNKNOWN


@pytest.mark.parametrize("place", ["(t + 5) % 32", "31 - t", "t // 2", "t % 16"])
def test_only_the_first_thread_starts_a_sum(place: str) -> None:
    """Where another one does, what was added before is lost, or not."""
    assert joined(UPDATE, place).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("guard", "expected"),
    [
        ("t < 5", Status.PROVED),
        ("t // 4 <= 5 and t * 2 < 40", Status.PROVED),
        ("t >= 1", Status.UNKNOWN),
        ("t != 0", Status.UNKNOWN),
        ("t % 4 == 3", Status.UNKNOWN),
        ("t < 5 and 3 < t", Status.UNKNOWN),
        ("A[t] < 4", Status.UNKNOWN),
    ],
)
def test_the_first_thread_takes_part(guard: str, expected: Status) -> None:
    """TVM starts a sum also where the first thread adds nothing to it, but not in a loop that leaves out the first."""
    guarded = f"            T.where({guard})\n            with T.init():"
    text = HEAD + JOINED.replace("            with T.init():", guarded)
    assert lp.compare(*(loads(text.replace("LOOP", loop)) for loop in ("range(32)", THREADS))).status is expected


@pytest.mark.parametrize(
    ("domains", "places"),
    [
        ((2, 16), ("t // 16", "t % 16")),
        ((4, 4, 2), ("t // 8", "t // 2 % 4", "t % 2")),
        ((4, 4, 2), ("t // 8", "t % 8 // 2", "t % 2")),
        ((64,), ("t * 2",)),
    ],
)
def test_reductions_along_parts_of_a_thread_axis(domains: tuple[int, ...], places: tuple[str, ...]) -> None:
    """Several reduce variables, which the first thread starts, may be found from one axis."""
    names = ("k0", "k1", "k2")
    axes = "".join(
        f"            {name} = T.axis.reduce({domain}, {place})\n"
        for name, domain, place in zip(names, domains, places, strict=False)
    )
    text = HEAD + JOINED.replace("            k = T.axis.reduce(32, t)\n", axes).replace("A[k]", "A[0]")
    loop, threads = (loads(text.replace("LOOP", each)) for each in ("range(32)", THREADS))
    assert lp.compare(loop, threads).status is Status.PROVED


RAGGED = """ragged(a: T.handle, B: T.Buffer((16,), "int32"), m: T.int32):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    A = T.match_buffer(a, (16, n), "int32")
    for i in T.thread_binding(16, thread="blockIdx.x"):
        for ko in range(OUTER):
            for ki in LOOP:
                with T.block("sum"):
                    vi = T.axis.spatial(16, i)
                    vk = T.axis.reduce(n, ko * 32 + ki)
                    T.where(GUARD)
                    with T.init():
                        B[vi] = 0
                    B[vi] = B[vi] + A[vi, vk]
"""


@pytest.mark.parametrize(
    ("outer", "guard", "where", "expected"),
    [
        ("(n + 31) // 32", "ko * 32 + ki < n", None, Status.UNKNOWN),
        ("(n + 31) // 32", "ko * 32 + ki < n", "n >= 1", Status.PROVED),
        ("4", "ko * 32 + ki < n", "n <= 128", Status.UNKNOWN),
        ("4", "ko * 32 + ki < n and i < m", "n <= 128 and n >= 1", Status.PROVED),
        ("(n + 31) // 32", "ko * 32 + ki < n and ko * 32 + ki + i < m", "n >= 1", Status.UNKNOWN),
        ("(n + 31) // 32", "ko * 32 + ki < n and ko * 32 + ki + i < m", "n >= 1 and m >= 16", Status.PROVED),
    ],
)
def test_a_sum_over_threads_has_a_part(outer: str, guard: str, where: str | None, expected: Status) -> None:
    """TVM stores the start before the loops of the sum, hence also where nothing is added; a plain loop does not."""
    text = HEAD + RAGGED.replace("OUTER", outer).replace("GUARD", guard)
    loop, threads = (loads(text.replace("LOOP", each)) for each in ("range(32)", THREADS))
    assert lp.compare(loop, threads, where=where).status is expected
    assert lp.compare(threads, loop, where=where).status is expected


def test_a_sum_over_one_thread_has_a_part() -> None:
    """One thread is no other case: what starts its sum stands before its loop."""
    text = HEAD + RAGGED.replace("OUTER", "n").replace("ko * 32 + ki", "ko + ki").replace("GUARD", "ko < 99")
    loop, threads = (loads(text.replace("LOOP", each)) for each in ("range(1)", THREADS.replace("32", "1")))
    assert lp.compare(loop, threads).status is Status.UNKNOWN
    assert lp.compare(loop, threads, where="n >= 1").status is Status.PROVED


def test_a_sum_that_no_iteration_starts() -> None:
    """TVM starts it whatever the variables along which it reduces are; a loop only where they are at their first."""
    text = HEAD + JOINED.replace("reduce(32, t)", "reduce(64, t * 2 + 1)").replace("A[k]", "A[k // 2]")
    loop, threads = (loads(text.replace("LOOP", each)) for each in ("range(32)", THREADS))
    assert lp.compare(loop, threads).status is Status.UNKNOWN


GUARDED = """guarded(A: T.Buffer((64,), "int32"), B: T.Buffer((1,), "int32"), n: T.int32):
    T.func_attr({"tirx.noalias": True})
    for k in LOOP:
        with T.block("sum"):
            vk = T.axis.reduce(64, k)
            T.where(k < n)
            with T.init():
                B[0] = 0
            B[0] = B[0] + A[vk]
"""
GUARDED_LOWERED = """guarded(A: T.Buffer((64,), "int32"), B: T.Buffer((1,), "int32"), n: T.int32):
    T.func_attr({"tirx.noalias": True})
    for k in T.thread_binding(64, thread="threadIdx.x"):
        C = T.decl_buffer((1,), "int32", scope="local")
        with T.attr(T.comm_reducer(lambda x, y: x + y, [0]), "reduce_scope", T.int32(0)):
            T.tvm_thread_allreduce(T.uint32(1), T.if_then_else(k < n, A[k], 0), T.bool(True), C[0], k)
        if k == 0:
            B[0] = C[0]
"""


def test_a_sum_without_parts_refutes_nothing() -> None:
    """TVM makes the second kernel of the first, and both store 0 where nothing is added; the loop does not."""
    lowered = loads(HEAD + GUARDED_LOWERED)
    loop, block = (loads(HEAD + GUARDED.replace("LOOP", each)) for each in ("range(64)", THREADS.replace("32", "64")))
    assert lp.compare(block, lowered).status is lp.compare(lowered, block).status is Status.UNKNOWN
    assert lp.compare(loop, lowered).status is Status.REFUTED
    assert all(lp.compare(each, lowered, where="n >= 1").status is Status.PROVED for each in (block, loop))
    other = loads(HEAD + GUARDED_LOWERED.replace("A[k]", "A[0]"))
    assert lp.compare(block, other, where="n >= 1").status is Status.REFUTED
