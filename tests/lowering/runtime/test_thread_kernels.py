"""Kernels with thread axes, built and run: C and OpenCL give what the interpreter gives, and what numpy says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.oracle.thread_kernels import judge
from tests.oracle.thread_mutants import PAIRS
from tests.oracle.thread_targets import in_c, in_opencl
from tests.oracle.thread_walker import shape_of
from tests.shares import one_in

import layoutproof as lp
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp.run import run
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.verify.verdict.verdict import Status

Array = npt.NDArray[Any]

HEAD = "from tvm.script import tir as T\n\n@T.prim_func\ndef f("
TARGETS = ("c", "opencl")


def symbolic(body: str, shapes: str, dtype: str = "float32") -> str:
    """A kernel of a symbol `n` over A and B of these shapes."""
    first, second = shapes.split("; ")
    return f"""a: T.handle, b: T.handle):
    n = T.int32()
    T.func_attr({{"tirx.noalias": True}})
    A = T.match_buffer(a, {first}, "{dtype}")
    B = T.match_buffer(b, {second}, "{dtype}")
{body}"""


def fixed(body: str, dtype: str = "int32", shape: str = "(8,)") -> str:
    """A kernel over A and B of one shape."""
    return f"""A: T.Buffer({shape}, "{dtype}"), B: T.Buffer({shape}, "{dtype}")):
    T.func_attr({{"tirx.noalias": True}})
{body}"""


GRID = symbolic(
    """    bx = T.launch_thread("blockIdx.x", n)
    S = T.decl_buffer((4,), "float32", scope="shared")
    tx = T.launch_thread("threadIdx.x", 4)
    S[tx] = A[bx * 4 + tx]
    T.tvm_storage_sync("shared")
    B[bx * 4 + tx] = S[3 - tx]
""",
    "(n * 4,); (n * 4,)",
)
THREADS = symbolic(
    """    bx = T.launch_thread("blockIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", n)
    B[bx, tx] = A[bx, n - 1 - tx]
""",
    "(2, n); (2, n)",
)
NONE_OR_ALL = symbolic(
    """    tx = T.launch_thread("threadIdx.x", n)
    B[2] = T.float32(3)
""",
    "(n,); (4,)",
)
HALVES = fixed(
    """    bx = T.launch_thread("blockIdx.x", 2)
    S = T.decl_buffer((4,), "float16", scope="shared.dyn")
    tx = T.launch_thread("threadIdx.x", 4)
    L = T.decl_buffer((2,), "float16", scope="local")
    L[1] = A[bx * 4 + tx] * T.float16(3)
    S[tx] = L[1] + T.float16(1)
    T.tvm_storage_sync("shared")
    B[bx * 4 + tx] = S[3 - tx] * L[1]
""",
    "float16",
)
ALL_REDUCE = """A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"tirx.noalias": True})
    bx = T.launch_thread("blockIdx.x", 4)
    red = T.decl_buffer((1,), "float32", scope="local")
    tx = T.launch_thread("threadIdx.x", 8)
    with T.attr(
        T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", T.reinterpret("handle", T.uint64(0))
    ):
        T.tvm_thread_allreduce(T.uint32(1), A[bx, tx], T.bool(True), red[0], tx)
    if tx == 0:
        B[bx] = red[0]
"""
ROW_MAXIMUM = fixed(
    """    with T.block("root"):
        M = T.alloc_buffer((4,), scope="shared")
        for i in T.thread_binding(4, thread="blockIdx.x"):
            for k in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("s"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        M[vi] = T.float32(-1000)
                    M[vi] = T.max(M[vi], A[vi, vk])
            for k in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("t"):
                    vi, vk = T.axis.remap("SS", [i, k])
                    B[vi, vk] = A[vi, vk] - M[vi]
""",
    "float32",
    "(4, 8)",
)
GUARDED = fixed("""    for i in T.thread_binding(8, thread="threadIdx.x"):
        B[i] = A[i]
    for j in T.thread_binding(3, thread="threadIdx.x"):
        B[j] = B[j] + A[7 - j]
""")
VIRTUAL = fixed("""    S = T.decl_buffer((8,), "int32", scope="shared")
    vt = T.launch_thread("vthread", 2)
    tx = T.launch_thread("threadIdx.x", 4)
    L = T.decl_buffer((2,), "int32", scope="local")
    L[tx % 2] = A[vt * 4 + tx]
    S[vt * 4 + tx] = L[tx % 2]
    T.tvm_storage_sync("shared")
    B[vt * 4 + tx] = S[7 - vt * 4 - tx] + L[tx % 2]
""")
BY_CONTENT = fixed("""    S = T.decl_buffer((8,), "int32", scope="shared")
    tx = T.launch_thread("threadIdx.x", 8)
    S[tx] = A[tx]
    T.tvm_storage_sync("shared")
    for k in range(A[0]):
        S[(tx + 1) % 8] = S[(tx + 1) % 8] + k
        T.tvm_storage_sync("shared")
    B[tx] = S[tx]
""")
ITS_OWN = fixed(
    """    S = T.decl_buffer((8,), "float32", scope="shared")
    tx = T.launch_thread("threadIdx.x", 8)
    L = T.decl_buffer((3000,), "float32", scope="local")
    for k in range(3000):
        L[k] = A[tx] + T.Cast("float32", k)
    S[tx] = A[tx]
    T.tvm_storage_sync("shared")
    B[tx] = L[2999 - tx] + S[7 - tx]
""",
    "float32",
)
TWO = """A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for x in T.thread_binding(8, thread="threadIdx.x"):
        C[x] = A[7 - x]
    for b in T.thread_binding(2, thread="blockIdx.y"):
        for x in T.thread_binding(4, thread="threadIdx.z"):
            B[b * 4 + x] = C[(b * 4 + x + 3) % 8]
"""

Says = Callable[[Array], Array]
KERNELS: Mapping[str, tuple[str, Mapping[str, tuple[int, ...]], tuple[int, ...], Says]] = {
    "a grid of any size": (
        GRID,
        {"A": (4,), "B": (4,)},
        (0, 1, 3),
        lambda a: a.reshape(-1, 4)[:, ::-1].reshape(-1),
    ),
    "any number of threads": (THREADS, {"A": (2, 1), "B": (2, 1)}, (0, 1, 3), lambda a: a[:, ::-1]),
    "half-precision floats": (
        HALVES,
        {"A": (8,), "B": (8,)},
        (),
        lambda a: (a * np.float16(3) + np.float16(1)).reshape(2, 4)[:, ::-1].reshape(-1) * (a * np.float16(3)),
    ),
    "a sum over threads": (ALL_REDUCE, {"A": (4, 8), "B": (4,)}, (), lambda a: a.sum(axis=1)),
    "a maximum over threads": (
        ROW_MAXIMUM,
        {"A": (4, 8), "B": (4, 8)},
        (),
        lambda a: a - np.maximum(a, -1000).max(axis=1, keepdims=True),
    ),
    "a loop with fewer iterations": (
        GUARDED,
        {"A": (8,), "B": (8,)},
        (),
        lambda a: a + np.where(np.arange(8) < 3, a[::-1], 0),
    ),
    "virtual threads": (VIRTUAL, {"A": (8,), "B": (8,)}, (), lambda a: a + a[::-1]),
    "a loop that contents decide": (
        BY_CONTENT,
        {"A": (8,), "B": (8,)},
        (),
        lambda a: a + a[0] * (a[0] - 1) // 2,
    ),
    "much memory of a thread": (
        ITS_OWN,
        {"A": (8,), "B": (8,)},
        (),
        lambda a: a + (2999 - np.arange(8)).astype(np.float32) + a[::-1],
    ),
    "two kernels": (TWO, {"A": (8,), "B": (8,), "C": (8,)}, (), lambda a: np.roll(a[::-1], -3)),
}


def arguments(func: lp.PrimFunc, shapes: Mapping[str, tuple[int, ...]], size: int | None) -> dict[str, Array]:
    """Small whole numbers of the types of the parameters."""
    rng = np.random.default_rng(5)
    types = {buffer.name: str(buffer.dtype) for buffer in func.buffers}
    scaled = {name: shape if size is None else (*shape[:-1], shape[-1] * size) for name, shape in shapes.items()}
    return {name: rng.integers(0, 9, shape).astype(types[name]) for name, shape in scaled.items()}


@one_in(18)
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_run(name: str) -> None:
    """In C and OpenCL, with what numpy says, on every size."""
    text, shapes, sizes, says = KERNELS[name]
    func = lp.loads(HEAD + text)
    kernels = [lp.Schedule(func).build(target) for target in TARGETS]
    for kernel in kernels:
        said = kernel.report.self_check
        assert said.startswith("equal to the interpreter") or (text == BY_CONTENT and "extent of loop k" in said)
    for size in sizes if sizes else (None,):
        given = arguments(func, shapes, size)
        expected = says(given["A"])
        for kernel in kernels:
            arrays = {name: array.copy() for name, array in given.items()}
            kernel.raw(**arrays)
            assert np.array_equal(arrays["B"], expected), kernel.report.target


def test_no_thread_does_nothing() -> None:
    """Nor what would be the same for all of them."""
    func = lp.loads(HEAD + NONE_OR_ALL)
    kernels = [lp.Schedule(func).build(target) for target in TARGETS]
    for size, last in ((0, 0), (2, 3)):
        a, b = np.zeros(size, np.float32), np.zeros(4, np.float32)
        assert run(func, {"A": a, "B": b})["B"][2] == last
        for kernel in kernels:
            result = b.copy()
            kernel.raw(A=a, B=result)
            assert result[2] == last


@pytest.mark.parametrize("name", PAIRS)
@one_in(9)
def test_scheduled_kernels_do_what_the_loops_do(name: str) -> None:
    """On both targets."""
    before, after = (lp.loads(text) for text in PAIRS[name])
    shapes = {buffer.name: tuple(shape_of(buffer)) for buffer in before.buffers}
    given = arguments(before, shapes, None)
    expected = run(before, given)["B"]
    for target in TARGETS:
        arrays = {name: array.copy() for name, array in given.items()}
        lp.Schedule(after).build(target).raw(**arrays)
        assert np.array_equal(arrays["B"], expected)


RACE = fixed("""    S = T.decl_buffer((8,), "int32", scope="shared")
    tx = T.launch_thread("threadIdx.x", 8)
    S[tx] = A[tx]
    B[tx] = S[7 - tx]
""")
ACROSS_ITERATIONS = fixed("""    S = T.decl_buffer((4,), "int32", scope="shared")
    tx = T.launch_thread("threadIdx.x", 4)
    for k in range(2):
        S[tx] = A[k * 4 + tx]
        T.tvm_storage_sync("shared")
        B[k * 4 + tx] = S[3 - tx]
""")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("text", "lines"), [(RACE, [8, 9]), (ACROSS_ITERATIONS, [9, 11])])
def test_a_race_is_named_and_nothing_is_built(text: str, lines: list[int], target: str) -> None:
    """Both accesses, with their threads and lines."""
    with pytest.raises(IllegalTransform) as caught:
        lp.Schedule(lp.loads(HEAD + text)).build(target)
    assert caught.value.status is (Status.REFUTED if text == RACE else Status.UNKNOWN)
    first = caught.value.diagnostics[0]
    assert "write S[threadIdx_x]" in first.message and "touch one cell" in first.message
    spans = [first.span, *(place for place, _ in first.related)]
    assert sorted(span.line for span in spans if span is not None) == lines


DIVERGENT = fixed("""    S = T.decl_buffer((8,), "int32", scope="shared")
    tx = T.launch_thread("threadIdx.x", 8)
    S[tx] = A[tx]
    if tx < 4:
        T.tvm_storage_sync("shared")
    B[tx] = S[tx]
""")
WARP = fixed("""    S = T.decl_buffer((8,), "int32", scope="warp")
    tx = T.launch_thread("threadIdx.x", 8)
    S[tx] = A[tx]
    B[tx] = S[tx]
""")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("text", "line", "said"),
    [(DIVERGENT, 9, "not all threads of a block reach the barriers"), (WARP, 7, "memory of scope warp")],
)
def test_what_cannot_be_run_is_refused_at_its_line(text: str, line: int, said: str, target: str) -> None:
    """Barriers that not all threads reach, and memory that has no meaning here."""
    with pytest.raises(LayoutproofError, match=said) as caught:
        lp.Schedule(lp.loads(HEAD + text)).build(target)
    first = caught.value.diagnostics[0]
    assert first.code == codes.UNSUPPORTED and first.span is not None and first.span.line == line


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('S = T.decl_buffer((4000000,), "int32", scope="shared")', "share 16,000,000 bytes; .* of local memory"),
        ('S = T.decl_buffer((65536,), "int32", scope="shared")', r"at most 4096 in all.* bound to \[65536\]"),
    ],
)
def test_limits_of_the_device(body: str, said: str) -> None:
    """Shared memory and the size of a group are numbers that the device has to have."""
    threads = 8 if "4000000" in body else 65536
    text = f"""A: T.Buffer(({threads},), "int32"), B: T.Buffer(({threads},), "int32")):
    T.func_attr({{"tirx.noalias": True}})
    {body}
    tx = T.launch_thread("threadIdx.x", {threads})
    S[tx] = A[tx]
    T.tvm_storage_sync("shared")
    B[tx] = S[{threads - 1} - tx]
"""
    with pytest.raises(LayoutproofError, match=said) as caught:
        lp.Schedule(lp.loads(HEAD + text)).build("opencl")
    assert caught.value.diagnostics[0].code == codes.LACKING


def test_groups_of_symbolic_size_are_checked_at_the_call() -> None:
    """As many threads as the device has not are an error, not a launch."""
    kernel = lp.Schedule(lp.loads(HEAD + THREADS)).build("opencl", check=False)
    arrays = {name: np.zeros((2, 70000), np.float32) for name in "AB"}
    with pytest.raises(LayoutproofError, match="takes work groups of at most"):
        kernel.raw(**arrays)


@pytest.mark.parametrize("first", range(0, 40, 8))
@one_in(9)
def test_random_kernels_on_both_targets(first: int) -> None:
    """Those that have no race give there what every order of threads gives."""
    accepted = [found for seed in range(first, first + 8) if (found := judge(seed)).accepted]
    assert in_c(accepted) == in_opencl(accepted[:3]) + len(accepted[3:])
