"""Kernels with thread axes as work groups: local memory, what is a work item's own, and where barriers stand."""

import re
from dataclasses import replace

import numpy as np
import pytest
from tests.lowering.codegen.opencl.programs import compile_source
from tests.lowering.runtime.opencl.sources import default_device
from tests.shares import one_in

import layoutproof as lp
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.evaluate import evaluate
from layoutproof.lowering.codegen.opencl.cl_emit import emit_opencl
from layoutproof.lowering.codegen.opencl.cl_helpers import LocalArgument, OpenCLSource
from layoutproof.lowering.runtime.opencl.limits import check_groups

HEAD = """from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
"""
LOCAL, GLOBAL = "barrier(CLK_LOCAL_MEM_FENCE);", "barrier(CLK_GLOBAL_MEM_FENCE);"


def source(body: str) -> OpenCLSource:
    """The OpenCL of a kernel, which compiles."""
    found = emit_opencl(lp.Schedule(lp.loads(HEAD + body)).lower())
    compile_source(found)
    return found


def steps(found: OpenCLSource) -> list[str]:
    """Stores and barriers, in the order of the text."""
    kernel = found.text[found.text.index("__kernel") :]
    return re.findall(r"barrier\([^)]*\);|\b\w+(?=\[[^=\n]*\] = )", kernel)


STEP = """    S = T.decl_buffer((8,), "int32", scope="{scope}")
    tx = T.launch_thread("threadIdx.x", 8)
    L = T.decl_buffer((2,), "int32", scope="local")
    L[0] = A[tx] * 2
    L[1] = tx
    S[tx] = L[0]
    T.tvm_storage_sync("shared")
    B[tx] = S[7 - tx] + L[1]
"""


@one_in(4)
@pytest.mark.parametrize("scope", ["shared", "shared.dyn"])
def test_shared_memory_is_local_and_local_memory_is_private(scope: str) -> None:
    """One barrier, where work items read what others have stored; what is a thread's own lives on over it."""
    found = source(STEP.format(scope=scope))
    assert "    __local int S[8];" in found.text and "    int L[2];" in found.text
    assert steps(found) == ["L", "L", "S", LOCAL, "B"]
    (launch,) = found.launches
    assert evaluate(launch.local_bytes, {}) == 32 and "a group shares 32 bytes" in found.text


SYMBOLS = """from tvm.script import tir as T

@T.prim_func
def f(a: T.handle, b: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "int16")
    B = T.match_buffer(b, (n, m), "int16")
    T.func_attr({"tirx.noalias": True})
    for i in T.thread_binding(n, thread="blockIdx.x"):
        S = T.decl_buffer((m * 2,), "int16", scope="shared")
        L = T.decl_buffer((1,), "int64", scope="shared.dyn")
        for k in T.thread_binding(m, thread="threadIdx.x"):
            S[m + k] = A[i, k]
            if k == 0:
                L[0] = T.int64(3)
            T.tvm_storage_sync("shared")
            B[i, k] = S[m * 2 - 1 - k] + T.int16(L[0])
"""


def of_symbols() -> OpenCLSource:
    """Groups as large as a symbol says, with memory for each of its work items."""
    return emit_opencl(lp.Schedule(lp.loads(SYMBOLS)).lower())


def test_shared_memory_of_symbolic_size_is_an_argument() -> None:
    """The host sets its size; what is of constant size is declared in the kernel."""
    found = of_symbols()
    compile_source(found)
    assert "    __local short *S" in found.text and "    __local long L[1];" in found.text
    assert "a group shares m*2*2 + 8 bytes" in found.text
    (launch,) = found.launches
    (local,) = [argument for argument in launch.arguments if isinstance(argument, LocalArgument)]
    assert local.name == "S" and evaluate(launch.local_bytes, {"m": 5}) == 28


@pytest.mark.parametrize("sizes", [(3, 4), (1, 1), (2, 0), (0, 3)])
def test_groups_share_what_the_host_allocates(sizes: tuple[int, int]) -> None:
    """Rows are turned round, of any length."""
    rows = np.arange(sizes[0] * sizes[1], dtype=np.int16).reshape(sizes)
    kernel = lp.Schedule(lp.loads(SYMBOLS)).build("opencl", check=False)
    n, m = sizes
    assert np.array_equal(kernel(A=rows, n=n, m=m), rows[:, ::-1] + 3)


def test_too_much_shared_memory_is_refused_before_a_launch() -> None:
    """With its size, how that follows from the symbols, and what the device has."""
    device = replace(default_device(), local_memory=64)
    check_groups(of_symbols(), device, {"n": 1, "m": 14})
    with pytest.raises(LayoutproofError) as refused:
        check_groups(of_symbols(), device, {"n": 1, "m": 15})
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.code == "LP445"
    assert "share 68 bytes (m*2*2 + 8)" in diagnostic.message and "64 bytes of local memory" in diagnostic.message


def test_the_size_of_shared_memory_is_known_before_a_launch() -> None:
    """What the kernel itself computes, the host cannot allocate by."""
    text = SYMBOLS.replace("S = T.decl_buffer((m * 2,)", "S = T.decl_buffer((m * 2 + i,)")
    with pytest.raises(LayoutproofError) as refused:
        emit_opencl(lp.Schedule(lp.loads(text)).lower())
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.code == "LP403" and diagnostic.span is not None
    assert "shared memory whose size the host knows; that of S depends on " in diagnostic.message


@one_in(4)
def test_a_barrier_without_use_is_left_out() -> None:
    """Two in a row are one; a phase that meets nothing waits for nothing."""
    text = STEP.format(scope="shared").replace(
        '    T.tvm_storage_sync("shared")\n', '    T.tvm_storage_sync("shared")\n' * 2
    )
    assert steps(source(text + '    T.tvm_storage_sync("shared")\n    L[1] = 0\n')).count(LOCAL) == 1


@one_in(4)
def test_global_memory_has_its_own_fence() -> None:
    """What one work item stores to a parameter another reads after the barrier, over which no access may be moved."""
    found = source("""    tx = T.launch_thread("threadIdx.x", 4)
    B[tx] = A[tx]
    T.tvm_storage_sync("shared")
    B[tx + 4] = B[3 - tx]
""")
    assert steps(found) == ["B", GLOBAL, "B"]
    assert "__global const int *restrict A," in found.text and "__global int *B" in found.text


@one_in(4)
def test_a_loop_waits_for_its_last_iteration() -> None:
    """The barrier at the beginning is for the iteration before, though no barrier of the text stands there."""
    found = source("""    S = T.decl_buffer((4,), "int32", scope="shared")
    tx = T.launch_thread("threadIdx.x", 4)
    L = T.decl_buffer((1,), "int32", scope="local")
    L[0] = 0
    for k in range(2):
        S[tx] = A[k * 4 + tx]
        T.tvm_storage_sync("shared")
        L[0] = L[0] + S[3 - tx]
        T.tvm_storage_sync("shared")
    B[tx] = L[0]
""")
    assert steps(found) == ["L", LOCAL, "S", LOCAL, "L", "B"]


@one_in(4)
def test_what_is_the_same_for_all_is_done_once() -> None:
    """By the first work item, into memory that all of them see."""
    found = source("""    S = T.decl_buffer((4,), "int32", scope="shared")
    ty = T.launch_thread("threadIdx.y", 2)
    tx = T.launch_thread("threadIdx.x", 4)
    L = T.decl_buffer((1,), "int32", scope="local")
    L[0] = A[3]
    S[tx] = A[tx]
    T.tvm_storage_sync("shared")
    B[ty * 4 + tx] = S[3 - tx] + L[0]
""")
    assert "if (get_local_id(1) == 0 && get_local_id(0) == 0) {" in found.text.replace(
        "get_local_id(0) == 0 && get_local_id(1) == 0", "get_local_id(1) == 0 && get_local_id(0) == 0"
    )
    assert "if (get_local_id(1) == 0) {" in found.text
    assert "__local int L[1];" in found.text


@one_in(4)
def test_virtual_threads_are_a_loop_of_a_work_item() -> None:
    """Each has its copy of what is a thread's own."""
    found = source("""    S = T.decl_buffer((8,), "int32", scope="shared")
    vt = T.launch_thread("vthread", 2)
    tx = T.launch_thread("threadIdx.x", 4)
    L = T.decl_buffer((1,), "int32", scope="local")
    L[0] = A[vt * 4 + tx]
    S[vt * 4 + tx] = L[0]
    T.tvm_storage_sync("shared")
    B[vt * 4 + tx] = S[7 - vt * 4 - tx] + L[0]
""")
    assert "int L[2];" in found.text and "L[vthread] = " in found.text
    (launch,) = found.launches
    assert [evaluate(extent, {}) for extent in launch.global_size] == [4]


@one_in(4)
def test_a_branch_of_all_may_have_barriers() -> None:
    """A branch inside of an `else` is a statement of its own, done once where it is the same for all."""
    found = source("""    S = T.decl_buffer((8,), "int32", scope="shared")
    tx = T.launch_thread("threadIdx.x", 8)
    S[tx] = A[tx]
    T.tvm_storage_sync("shared")
    if A[0] < 3:
        B[tx] = S[7 - tx]
        T.tvm_storage_sync("shared")
        S[tx] = 3
    else:
        if A[1] < 3:
            S[0] = 7
    T.tvm_storage_sync("shared")
    B[tx] = B[tx] + S[(tx + 1) % 8]
""")
    assert steps(found)[:4] == ["S", LOCAL, "B", LOCAL]
    assert "} else {" in found.text and "else if" not in found.text


LANES = """    S = T.decl_buffer((8,), "int32", scope="shared")
    tx = T.launch_thread("threadIdx.x", 2)
    L = T.decl_buffer((8,), "int32", scope="local")
    for k in range(8):
        L[k] = A[tx * 4 + k % 4]
    S[T.Ramp(tx * 4, 1, 4)] = L[T.Ramp(4, 1, 4)]
    T.tvm_storage_sync("shared")
    B[T.Ramp(tx * 4, 1, 4)] = S[T.Ramp(4 - tx * 4, 1, 4)] + L[T.Ramp(0, 1, 4) * T.Broadcast(2, 4) % T.Broadcast(7, 4)]
"""


@one_in(4)
def test_a_threads_own_memory_by_lanes() -> None:
    """Vectors of indices are those of the work item's own memory, too."""
    found = source(LANES)
    assert "int L[8];" in found.text
    kernel = lp.Schedule(lp.loads(HEAD + LANES)).build("opencl")
    assert kernel.report.self_check == "equal to the interpreter, bit for bit"


def test_wide_indices_of_a_threads_own_memory() -> None:
    """An index of 64 bits is that of the own memory, without the thread in it."""
    found = source("""    for b in T.thread_binding(T.int64(1), thread="blockIdx.x"):
        for t in T.thread_binding(T.int64(8), thread="threadIdx.x"):
            with T.block("k"):
                L = T.alloc_buffer((T.int64(2),), "int32", scope="local")
                S = T.alloc_buffer((T.int64(8),), "int32", scope="shared")
                L[T.int64(1)] = A[t]
                S[t] = L[T.int64(1)]
                T.tvm_storage_sync("shared")
                B[t] = S[T.int64(7) - t] + L[T.int64(1)]
""")
    assert "int L[2];" in found.text and "L[1] = " in found.text
