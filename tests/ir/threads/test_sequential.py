"""Kernels as parallel loops: one index an axis, phases at barriers, memory by who shares it; and what is refused."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tests.oracle import async_kernels, thread_mutants
from tests.oracle.thread_kernels import judge, judge_text
from tests.oracle.thread_mutants import PAIRS
from tests.shares import one_in

import layoutproof as lp
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp.run import run
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.stmt import For, ForKind
from layoutproof.ir.threads.axes import has_threads
from layoutproof.ir.threads.sequential import NoSequence, Sequential, sequential
from layoutproof.ir.visit import walk
from layoutproof.ir.wellformed import require_wellformed
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.faults.races import prove_race_free
from layoutproof.verify.verdict.verdict import Status

HEAD = "from tvm.script import tir as T\n\n@T.prim_func\ndef f("


def form(text: str) -> Sequential:
    """The function with parallel loops, which is well-formed."""
    found = sequential(lp.loads(HEAD + text))
    assert isinstance(found, Sequential), found
    require_wellformed(found.func)
    assert not has_threads(found.func.body)
    return found


def refusal(text: str) -> str:
    """Why there is none."""
    found = sequential(lp.loads(HEAD + text))
    assert isinstance(found, NoSequence), print_func(found.func)
    return found.reason


def loops(found: Sequential) -> list[tuple[str, str]]:
    """Names and kinds of the loops, in program order."""
    return [(node.var.name, node.kind.value) for node in walk(found.func.body) if isinstance(node, For)]


ONE_INDEX = """A: T.Buffer((4, 4), "int32"), B: T.Buffer((4,), "int32")):
    for i in T.thread_binding(4, thread="threadIdx.x"):
        for j in T.thread_binding(4, thread="threadIdx.x"):
            B[i] = A[i, j]
"""


def test_two_loops_of_one_axis_have_one_index() -> None:
    """They are not a product: the diagonal is what is stored."""
    found = form(ONE_INDEX)
    assert loops(found) == [("threadIdx_x", "parallel")]
    a = np.arange(16, dtype=np.int32).reshape(4, 4)
    assert (run(lp.loads(HEAD + ONE_INDEX), {"A": a})["B"] == np.diag(a)).all()


def test_an_axis_has_the_threads_of_its_longest_loop() -> None:
    """In the shorter loop the other threads do nothing."""
    found = form("""A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in T.thread_binding(8, thread="threadIdx.x"):
        for j in T.thread_binding(3, thread="threadIdx.x"):
            B[j] = A[i]
""")
    assert "threadIdx_x < 3" in print_func(found.func)


SHARED = """A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for b in T.thread_binding(2, thread="blockIdx.x"):
        with T.block("k"):
            T.reads()
            T.writes()
            S = T.alloc_buffer((4,), "int32", scope="shared")
            L = T.alloc_buffer((1,), "int32", scope="local")
            for t in T.thread_binding(4, thread="threadIdx.x"):
                L[0] = A[t] * 2
                S[t] = A[t] + b
                {sync}
                if b == 1:
                    B[t] = S[3 - t] + L[0]
"""


@pytest.mark.parametrize(("sync", "implied"), [("T.tvm_storage_sync('shared')", False), ("T.evaluate(0)", True)])
def test_phases_end_at_barriers(sync: str, implied: bool) -> None:
    """At those of the text, or, if it has none, where threads meet in shared memory."""
    text = SHARED.replace("{sync}", sync)
    found = form(text)
    assert found.implied is implied
    assert loops(found) == [("blockIdx_x", "parallel"), ("threadIdx_x", "parallel"), ("threadIdx_x", "parallel")]
    a = np.array([3, 1, 4, 1], dtype=np.int32)
    assert (run(lp.loads(HEAD + text), {"A": a})["B"] == a[::-1] + 1 + 2 * a).all()


def test_a_thread_keeps_what_is_its_own_over_a_barrier() -> None:
    """Memory of a thread has a copy for each, shared memory has one."""
    text = print_func(form(SHARED.replace("{sync}", "T.tvm_storage_sync('shared')")).func)
    assert "L[threadIdx_x, 0]" in text
    assert "S[threadIdx_x]" in text


def test_loops_around_barriers_are_gone_through_together() -> None:
    """The loop is outside, the phases inside it."""
    found = form("""A: T.Buffer((3, 4), "int32"), B: T.Buffer((3, 4), "int32")):
    t = T.launch_thread("threadIdx.x", 4)
    S = T.decl_buffer((4,), "int32", scope="shared")
    for k in range(3):
        S[t] = A[k, t]
        T.tvm_storage_sync("shared")
        B[k, t] = S[3 - t]
        T.tvm_storage_sync("shared")
""")
    assert loops(found) == [("k", "serial"), ("threadIdx_x", "parallel"), ("threadIdx_x", "parallel")]


def test_memory_that_is_declared_apart_from_its_allocation() -> None:
    """A view of the whole of a kernel's own memory is that memory."""
    found = form("""A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    t = T.launch_thread("threadIdx.x", 4)
    S_data = T.allocate([4], "int32", "shared")
    L_data = T.allocate([1], "int32", "local")
    S = T.decl_buffer((4,), "int32", data=S_data, scope="shared")
    L = T.decl_buffer((1,), "int32", data=L_data, scope="local")
    L[0] = A[t]
    S[t] = L[0]
    T.tvm_storage_sync("shared")
    B[t] = S[3 - t] + L[0]
""")
    assert loops(found) == [("threadIdx_x", "parallel"), ("threadIdx_x", "parallel")]


def test_what_all_threads_do_alike_is_done_once() -> None:
    """They store the same values, and read none of them in the phase."""
    found = form("""A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    S = T.decl_buffer((4,), "int32", scope="shared")
    t = T.launch_thread("threadIdx.x", 4)
    for j in range(4):
        S[j] = A[j]
    B[t] = S[3 - t]
""")
    assert loops(found) == [("j", "serial"), ("threadIdx_x", "parallel")]


def test_a_reduction_over_threads_runs_along_its_axis() -> None:
    """In some order, which is noted for floats."""
    text = """A: T.Buffer((2, 8), "float32"), B: T.Buffer((2,), "float32")):
    for i in T.thread_binding(2, thread="blockIdx.x"):
        for k in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]
"""
    found = form(text)
    assert {op.value for op in found.crosswise} == {"+"}
    assert loops(found) == [("blockIdx_x", "parallel"), ("threadIdx_x", "serial")]


def test_an_all_reduce_is_the_same_reduction() -> None:
    """The lowered form, with a condition on threads."""
    text = """A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
    r = T.decl_buffer((1,), "float32", scope="local")
    t = T.launch_thread("threadIdx.x", 8)
    with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", T.int32(0)):
        T.tvm_thread_allreduce(T.uint32(1), A[t], t < 6, r[0], t)
    if t == 0:
        B[0] = r[0]
"""
    found = form(text)
    assert {op.value for op in found.crosswise} == {"+"}
    a = np.arange(8, dtype=np.float32)
    assert run(lp.loads(HEAD + text), {"A": a})["B"][0] == a[:6].sum()


def test_reading_and_printing_of_axes_and_reducers() -> None:
    """What is printed is read as the same text."""
    text = """A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
    t = T.env_thread("threadIdx.x")
    r = T.decl_buffer((1,), "float32", scope="local")
    with T.launch_thread(t, 8):
        with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", T.int32(0)):
            T.tvm_thread_allreduce(T.uint32(1), A[t], True, r[0], t)
        B[0] = r[0]
"""
    func = lp.loads(HEAD + text)
    bound = [node for node in walk(func.body) if isinstance(node, For) and node.kind is ForKind.THREAD_BINDING]
    assert [loop.thread for loop in bound] == ["threadIdx.x"]
    printed = print_func(func)
    assert print_func(lp.loads("from tvm.script import tir as T\n" + printed)) == printed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("t = T.launch_thread(u, 8)\n    B[0] = 1", "takes a name that T.env_thread declared"),
        ("T.launch_thread('threadIdx.x')\n    B[0] = 1", "extent"),
        ("t = T.launch_thread('threadIdx.x', 2.5)\n    B[0] = 1", "an integer is expected"),
        (
            "with T.attr(T.comm_reducer(lambda x: x, [0]), 'reduce_scope', 0):\n        B[0] = 1",
            "two variables for each identity",
        ),
        (
            "with T.attr(T.comm_reducer(lambda x, y: (x, y), [0]), 'reduce_scope', 0):\n        B[0] = 1",
            "two variables for each identity, and gives as many values",
        ),
    ],
)
def test_wrong_declarations_are_named(text: str, said: str) -> None:
    """The error says what was expected."""
    with pytest.raises(LayoutproofError, match=said):
        lp.loads(HEAD + f'B: T.Buffer((4,), "int32")):\n    {text}\n')


# The barrier is not reached by all, or does not stand where threads meet.
REFUSED = {
    "not all threads": """B: T.Buffer((4,), "int32")):
    t = T.launch_thread("threadIdx.x", 4)
    if t < 2:
        T.tvm_storage_sync("shared")
    B[t] = 1
""",
    "what the kernel computes": """B: T.Buffer((4,), "int32")):
    S = T.decl_buffer((4,), "int32", scope="shared")
    t = T.launch_thread("threadIdx.x", 4)
    S[t] = t
    T.tvm_storage_sync("shared")
    if S[0] == 0:
        T.tvm_storage_sync("shared")
    B[t] = 1
""",
    "another view": """A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    t = T.launch_thread("threadIdx.x", 4)
    S = T.decl_buffer((4,), "int32", scope="shared")
    V = T.decl_buffer((2, 2), "int32", data=S.data, scope="shared")
    V[t // 2, t % 2] = A[t]
    B[t] = S[t]
""",
    "not one of the whole block": """A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    S = T.decl_buffer((64,), "int32", scope="shared")
    t = T.launch_thread("threadIdx.x", 64)
    S[t] = A[t]
    T.tvm_storage_sync("warp")
    B[t] = S[63 - t]
""",
    "asynchronous": """A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    t = T.launch_thread("threadIdx.x", 4)
    with T.attr(0, "async_scope", 1):
        B[t] = A[t]
""",
    "which is opaque": """B: T.Buffer((4,), "int32")):
    t = T.launch_thread("threadIdx.x", 4)
    T.call_extern("int32", "f", t)
    B[t] = 1
""",
    "of scope warp": """B: T.Buffer((4,), "int32")):
    t = T.launch_thread("threadIdx.x", 4)
    W = T.decl_buffer((4,), "int32", scope="warp")
    W[t] = 1
    B[t] = W[t]
""",
    "not constant": """n: T.int32, B: T.Buffer((8,), "int32")):
    for i in T.thread_binding(n, thread="threadIdx.x"):
        for j in T.thread_binding(4, thread="threadIdx.x"):
            B[j] = i
""",
    "not one operator": """A: T.Buffer((8,), "int32"), B: T.Buffer((1,), "int32")):
    for k in T.thread_binding(8, thread="threadIdx.x"):
        with T.block("last"):
            vk = T.axis.reduce(8, k)
            with T.init():
                B[0] = 0
            B[0] = A[vk] - B[0]
""",
}


@pytest.mark.parametrize("said", REFUSED)
def test_what_is_not_understood_is_refused(said: str) -> None:
    """With the reason."""
    assert said in refusal(REFUSED[said])


def test_a_run_of_what_is_not_understood_is_an_error() -> None:
    """It is not run in some other way."""
    with pytest.raises(LayoutproofError, match="cannot be interpreted: not all threads"):
        run(lp.loads(HEAD + REFUSED["not all threads"]), {})


def test_memory_of_the_grid_without_a_barrier_is_looked_at_apart() -> None:
    """A barrier that shared memory needs is not there for other memory."""
    found = form("""A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    S = T.decl_buffer((4,), "int32", scope="shared")
    t = T.launch_thread("threadIdx.x", 4)
    B[t] = 0
    for k in range(2):
        S[t] = A[t] + k
        B[t] = B[t] + S[3 - t]
""")
    assert found.apart is not None
    assert loops(Sequential(found.apart)) == [("threadIdx_x", "parallel"), ("k", "serial")]


def test_parts_that_are_looked_at_apart_have_memory_of_their_own() -> None:
    """What a thread keeps to itself is no race, in however many parts it is, and however few threads there are."""
    for threads in (1, 4):
        found = form(f"""A: T.Buffer((16,), "int32"), B: T.Buffer((4,), "int32")):
    T.func_attr({{"tirx.noalias": True}})
    bx = T.launch_thread("blockIdx.x", 2)
    S = T.decl_buffer((16,), "int32", scope="shared")
    t = T.launch_thread("threadIdx.x", {threads})
    L = T.decl_buffer((2,), "int32", scope="local")
    L[1] = A[t]
    T.tvm_storage_sync("shared")
    L[0] = L[1] + L[1]
    S[t + 4] = A[t]
    for k in range(2):
        S[15 - t] = S[t]
        L[1] = 1 - L[0]
        T.tvm_storage_sync("shared")
    S[t] = L[0]
""")
        assert found.apart is not None
        parts = (found.func, found.apart)
        assert {v.status for part in parts for v in prove_race_free(Facts.of(part))} == {Status.PROVED}


def test_memory_of_one_name_in_two_kernels() -> None:
    """It is two memories, each of its own size."""
    kernel = """
    for x in T.thread_binding({threads}, thread="threadIdx.x"):
        with T.block("{name}"):
            S = T.alloc_buffer(({threads},), "int32", scope="shared")
            S[x] = A[x]
            T.tvm_storage_sync("shared")
            B[{first} + x] = S[{threads} - 1 - x]
"""
    both = kernel.format(name="a", threads=4, first=0) + kernel.format(name="b", threads=8, first=4)
    text = (
        f'A: T.Buffer((8,), "int32"), B: T.Buffer((12,), "int32")):\n    T.func_attr({{"tirx.noalias": True}})\n{both}'
    )
    form(text)
    a = np.arange(8, dtype=np.int32)
    expected = [3, 2, 1, 0, 7, 6, 5, 4, 3, 2, 1, 0]
    assert run(lp.loads(HEAD + text), {"A": a})["B"].tolist() == expected
    result = np.zeros(12, np.int32)
    lp.Schedule(lp.loads(HEAD + text)).build().raw(A=a, B=result)
    assert result.tolist() == expected


DOUBLE_BUFFER = """A: T.Buffer((3, 4), "int32"), B: T.Buffer((3, 4), "int32")):
    T.func_attr({"tirx.noalias": True})
    S = T.decl_buffer((2, 4), "int32", scope="shared")
    t = T.launch_thread("threadIdx.x", 4)
    for k in range(3):
        S[{slot}, t] = A[k, t]
        T.tvm_storage_sync("shared")
        B[k, t] = S[{slot}, 3 - t]
"""


@pytest.mark.parametrize(("strides", "known"), [("", True), ("strides=[2, 1], ", True), ("strides=[1, 1], ", False)])
def test_elements_of_a_thread_that_are_one_cell(strides: str, known: bool) -> None:
    """A copy for each thread has a cell for each element: of memory in which two of them are one there is none."""
    text = (
        'A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):\n'
        f'    L = T.alloc_buffer((2, 2), "int32", {strides}scope="local")\n'
        '    for t in T.thread_binding(8, thread="threadIdx.x"):\n        L[0, 1] = A[t]\n'
        "        L[1, 0] = 0\n        T.tvm_storage_sync('shared')\n        B[t] = L[0, 1]\n"
    )
    assert known or "elements that may be one cell" in refusal(text)
    assert not known or run(form(text).func, [np.arange(8, dtype=np.int32), None])["B"].tolist() == list(range(8))


@pytest.mark.parametrize(("slot", "free"), [("k % 2", True), ("0", False)])
def test_the_end_of_an_iteration_meets_the_beginning_of_the_next(slot: str, free: bool) -> None:
    """With two buffers one barrier in a loop is enough, with one it is not."""
    found = form(DOUBLE_BUFFER.replace("{slot}", slot))
    assert found.apart is not None
    statuses = {verdict.status for verdict in prove_race_free(Facts.of(found.apart))}
    assert statuses == {Status.PROVED if free else Status.REFUTED}


SLOTS = """
@T.prim_func
def kernel(A: T.Buffer((16,), "int32"), B: T.Buffer((2, 16), "int32")):
    T.func_attr({{"tirx.noalias": True}})
    bx = T.launch_thread("blockIdx.x", 1)
    S = T.decl_buffer((16,), "int32", scope="shared")
    tx = T.launch_thread("threadIdx.x", 4)
    for j in range(4):
        S[tx * 4 + j] = 0
    T.tvm_storage_sync("shared")
    for k in range(6):
        {first}
        if {condition}:
            T.tvm_storage_sync("shared")
        {second}
    T.tvm_storage_sync("shared")
    for j in range(4):
        B[0, tx * 4 + j] = S[tx * 4 + j]
"""
STORES = {
    "a slot for each iteration of two": "S[k % 2 * 4 + (tx + k // 2) % 4] = A[tx] + k",
    "a slot for each iteration of three": "S[k % 3 * 4 + (tx + k // 3) % 4] = A[tx] + k",
    "one cell": "S[tx] = A[tx] + k",
    "elsewhere": "B[1, tx] = k",
}


@one_in(7)
@pytest.mark.parametrize("condition", ["k % 4 == 3", "k % 3 == 2", "k % 2 == 1", "k == 1", "k < 6", "k < 0"])
@pytest.mark.parametrize("first", STORES.values(), ids=STORES)
@pytest.mark.parametrize("second", STORES.values(), ids=STORES)
def test_barriers_in_some_iterations(first: str, second: str, condition: str) -> None:
    """What stands between two barriers may be of several iterations: none of them disturbs another one."""
    judged = judge_text(SLOTS.format(first=first, second=second, condition=condition), random.Random(1))
    elsewhere = {first, second} <= {STORES["one cell"], STORES["elsewhere"]}
    assert judged.outcome in ({"accepted"} if elsewhere else {"accepted", "race, seen", "race, not seen"})


@one_in(9)
@pytest.mark.parametrize(("name", "before", "after"), [(name, *pair) for name, pair in PAIRS.items()])
def test_every_change_of_a_kernel(name: str, before: str, after: str) -> None:
    """The kernel is proved; of its changes, none that threads find wrong."""
    assert thread_mutants.judge(before, after, 0) == "right, proved"
    chosen = list(thread_mutants.mutants(after))
    for number in range(len(name), len(chosen), 11):
        thread_mutants.judge(before, chosen[number][1], number)


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_random_kernels_thread_by_thread(seed: int) -> None:
    """What is accepted gives one result in ten orders of threads, and ours."""
    assert judge(seed).outcome != "race, not seen"


@one_in(7)
@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_random_pipelines_of_copies_that_take_their_time(seed: int) -> None:
    """What is accepted gives one result, whenever a copy takes effect before its wait, and ours."""
    assert async_kernels.judge(seed) != ""
