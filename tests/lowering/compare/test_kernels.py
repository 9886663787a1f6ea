"""Kernels against the loops that they are schedules of: proved for all sizes, and wrong ones refused or refuted."""

from __future__ import annotations

import pytest
from tests.shares import one_in

import layoutproof as lp
from layoutproof.lowering.compare.compare_programs import compare_bit_for_bit
from layoutproof.lowering.compare.comparison import Comparison
from layoutproof.verify.verdict.verdict import Status

HEAD = "from tvm.script import tir as T\n\n@T.prim_func\ndef "


def compare(before: str, after: str, where: str | None = None) -> Comparison:
    """The comparison of two functions, given from their signatures on."""
    return lp.compare(lp.loads(HEAD + before), lp.loads(HEAD + after), where=where)


TRANSPOSE = """plain(a: T.handle, b: T.handle):
    n, m = T.int32(), T.int32()
    T.func_attr({"tirx.noalias": True})
    A = T.match_buffer(a, (n * 8, m * 8), "float32")
    B = T.match_buffer(b, (m * 8, n * 8), "float32")
    for i, j in T.grid(m * 8, n * 8):
        B[i, j] = A[j, i]
"""
TILED_TRANSPOSE = """tiled(a: T.handle, b: T.handle):
    n, m = T.int32(), T.int32()
    T.func_attr({"tirx.noalias": True})
    A = T.match_buffer(a, (n * 8, m * 8), "float32")
    B = T.match_buffer(b, (m * 8, n * 8), "float32")
    by = T.launch_thread("blockIdx.y", n)
    bx = T.launch_thread("blockIdx.x", m)
    S = T.decl_buffer((8, 9), "float32", scope="shared")
    ty = T.launch_thread("threadIdx.y", 8)
    tx = T.launch_thread("threadIdx.x", 8)
    S[ty, tx] = A[by * 8 + ty, bx * 8 + tx]
    T.tvm_storage_sync("shared")
    B[bx * 8 + ty, by * 8 + tx] = S[tx, ty]
"""

MATMUL = """plain(A: T.Buffer((32, 64), "float32"), B: T.Buffer((64, 32), "float32"), C: T.Buffer((32, 32), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(32, 32):
        C[i, j] = T.float32(0)
        for k in range(64):
            C[i, j] = C[i, j] + A[i, k] * B[k, j]
"""
TILED_MATMUL = """tiled(A: T.Buffer((32, 64)), B: T.Buffer((64, 32)), C: T.Buffer((32, 32))):
    T.func_attr({"tirx.noalias": True})
    by = T.launch_thread("blockIdx.y", 4)
    bx = T.launch_thread("blockIdx.x", 4)
    P = T.decl_buffer((8, 8), "float32", scope="shared")
    Q = T.decl_buffer((8, 8), "float32", scope="shared")
    ty = T.launch_thread("threadIdx.y", 8)
    tx = T.launch_thread("threadIdx.x", 8)
    acc = T.decl_buffer((1,), "float32", scope="local")
    acc[0] = T.float32(0)
    for ko in range(8):
        P[ty, tx] = A[by * 8 + ty, ko * 8 + tx]
        Q[ty, tx] = B[ko * 8 + ty, bx * 8 + tx]
        T.tvm_storage_sync("shared")
        for ki in range(8):
            acc[0] = acc[0] + P[ty, ki] * Q[ki, tx]
        T.tvm_storage_sync("shared")
    C[by * 8 + ty, bx * 8 + tx] = acc[0]
"""

ROW_SUM = """plain(a: T.handle, B: T.Buffer((16,), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    A = T.match_buffer(a, (16, n), "float32")
    for i in range(16):
        B[i] = T.float32(0)
        for k in range(n):
            B[i] = B[i] + A[i, k]
"""
ROW_SUM_ACROSS = """across(a: T.handle, B: T.Buffer((16,), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    A = T.match_buffer(a, (16, n), "float32")
    for i in T.thread_binding(16, thread="blockIdx.x"):
        for ko in range((n + 31) // 32):
            for ki in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("sum"):
                    vi = T.axis.spatial(16, i)
                    vk = T.axis.reduce(n, ko * 32 + ki)
                    T.where(ko * 32 + ki < n)
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk]
"""


def test_a_transpose_through_shared_memory_for_all_sizes() -> None:
    """Sizes are symbols; the tile has a padded row."""
    found = compare(TRANSPOSE, TILED_TRANSPOSE)
    assert found.status is Status.PROVED
    assert found.strictness == ()


def test_a_matrix_product_through_shared_memory_is_the_same_bit_for_bit() -> None:
    """Each sum keeps its order."""
    found = compare(MATMUL, TILED_MATMUL)
    assert found.status is Status.PROVED
    assert found.strictness == ()


def test_a_sum_over_threads_has_no_fixed_order() -> None:
    """Sums of floats take assumptions, sums of integers none."""
    found = compare(ROW_SUM, ROW_SUM_ACROSS, "n >= 1")
    assert found.status is Status.PROVED
    assert set(found.strictness) == {"nsz", "reassoc"}
    empty = compare(ROW_SUM, ROW_SUM_ACROSS)  # no thread starts an empty sum, and all others are proved
    assert empty.status is Status.UNKNOWN
    reason = str(empty.verdicts[0].reason)
    assert "with n = 0: `B[" in reason and "where n >= 1 no difference is known" in reason
    integers = compare(ROW_SUM.replace("float32", "int32"), ROW_SUM_ACROSS.replace("float32", "int32"), "n >= 1")
    assert (integers.status, integers.strictness) == (Status.PROVED, ())


def test_an_order_that_is_not_fixed_is_not_proved_bit_for_bit() -> None:
    """Also where the parallel loops, run in order, would give the same."""
    size = "    n = T.int32()\n"
    before = ROW_SUM.replace(size, "").replace("(16, n)", "(16, 32)").replace("range(n)", "range(32)")
    after = ROW_SUM_ACROSS.replace(size, "").replace("(16, n)", "(16, 32)").replace("range((n + 31) // 32)", "range(1)")
    after = after.replace("reduce(n,", "reduce(32,").replace(" < n)", " < 32)")
    exact = compare_bit_for_bit(lp.loads(HEAD + before), lp.loads(HEAD + after))
    assert exact.status is Status.UNKNOWN
    assert "an order that is not fixed" in str(exact.verdicts[0].reason)


BLOCKS = """blocks(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    with T.block("root"):
        S = T.alloc_buffer((4, 8), "float32", scope="shared")
        for b in T.thread_binding(4, thread="blockIdx.x"):
            for t in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("copy"):
                    vb, vt = T.axis.remap("SS", [b, t])
                    S[vb, vt] = A[vb, vt]
            for t in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("turn"):
                    vb, vt = T.axis.remap("SS", [b, t])
                    B[vb, vt] = S[vb, 7 - vt]
"""
LOOPS = """loops(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(4, 8):
        B[i, j] = A[i, 7 - j]
"""


def test_barriers_of_blocks_are_put_in_later_and_said() -> None:
    """Blocks are lowered, and barriers come with that."""
    found = compare(LOOPS, BLOCKS)
    assert found.status is Status.PROVED
    assert "barriers are taken to stand" in str(found.verdicts[0].reason)


@one_in(4)
def test_a_lowered_kernel_has_to_have_its_barriers() -> None:
    """Without any, its threads meet; unless the kernel before had none either, and they are still to come."""
    bare = TILED_MATMUL.replace(SYNC, "")
    assert compare(MATMUL, bare).status is not Status.PROVED
    assert compare(TILED_MATMUL, bare).status is not Status.PROVED
    assert compare(bare, TILED_MATMUL).status is Status.PROVED
    assert compare(bare, bare.replace("by * 8 + ty", "ty + by * 8")).status is Status.PROVED


SYNC = '        T.tvm_storage_sync("shared")\n'
LAST = "Q[ki, tx]\n"
WRONG = {
    "the first barrier is missing": (MATMUL, TILED_MATMUL.replace(SYNC, "", 1)),
    "the last barrier is missing": (MATMUL, TILED_MATMUL.replace(LAST + SYNC, LAST)),
    "no barrier at all": (MATMUL, TILED_MATMUL.replace(SYNC, "")),
    "a barrier in a branch": (MATMUL, TILED_MATMUL.replace(SYNC, f"        if ty < 4:\n    {SYNC}")),
    "a tile one too small": (MATMUL, TILED_MATMUL.replace("for ki in range(8)", "for ki in range(7)")),
    "an index off by a thread": (MATMUL, TILED_MATMUL.replace("A[by * 8 + ty,", "A[by * 8 + tx,")),
    "memory of a thread in place of shared memory": (
        MATMUL,
        TILED_MATMUL.replace('"shared")\n    ty', '"local")\n    ty'),
    ),
    "an accumulator that threads share": (MATMUL, TILED_MATMUL.replace('scope="local"', 'scope="shared"')),
    "a barrier that comes too early": (
        TRANSPOSE,
        TILED_TRANSPOSE.replace(SYNC[4:], "").replace("    S[ty, tx] =", f"{SYNC[4:]}    S[ty, tx] ="),
    ),
    "a transpose that is none": (TRANSPOSE, TILED_TRANSPOSE.replace("S[tx, ty]", "S[ty, tx]")),
    "a tile without room": (TRANSPOSE, TILED_TRANSPOSE.replace("(8, 9)", "(8, 7)")),
    "a sum that loses its last elements": (ROW_SUM, ROW_SUM_ACROSS.replace("(n + 31) // 32", "n // 32")),
    "a sum without its guard": (ROW_SUM, ROW_SUM_ACROSS.replace("T.where(ko * 32 + ki < n)", "T.reads()")),
}


@one_in(9)
@pytest.mark.parametrize("what", WRONG)
def test_wrong_kernels_are_not_proved(what: str) -> None:
    """Each change alters a result, or what decides it is a race."""
    before, after = WRONG[what]
    assert after not in (TILED_MATMUL, TILED_TRANSPOSE, ROW_SUM_ACROSS)
    assert compare(before, after).status in (Status.REFUTED, Status.UNKNOWN)


def test_a_number_that_is_no_size_may_be_zero() -> None:
    """Only sizes are excluded where programs differ at 0: a flag is 0 as often as not."""
    head = 'f(b: T.handle, n: T.int32):\n    B = T.match_buffer(b, (4,), "int32")\n    '
    found = compare(head + "B[0] = T.Select(n == 0, 1, 2)\n", head + "B[0] = 2\n")
    assert found.status is Status.REFUTED


THREE = 'A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")'
IN_TURN = f"""plain({THREE}):
    for i in range(8):
        A[i] = T.float32(1)
    for j in range(8):
        B[j] = T.float32(2)
    for i in range(8):
        C[i] = T.float32(3)
"""
BY_THREADS = f"""threads({THREE}):
    for tx in T.thread_binding(8, "threadIdx.x"):
        A[tx] = T.float32(1)
        for j in range(8):
            B[j] = T.float32(2)
        T.tvm_storage_sync("shared")
        C[tx] = T.float32(3)
"""


def test_threads_meet_where_parameters_overlap() -> None:
    """Where no barrier is between stores to two parameters, callers are asked for parameters that do not overlap, and a
    step is refused; where barriers are between all, nothing is asked.
    """
    found = compare(IN_TURN, BY_THREADS)
    assert found.status is Status.PROVED and found.verdicts[0].reason == "precondition: parameters do not overlap"
    apart = BY_THREADS.replace("        for j", f"{SYNC}        for j")
    assert compare(IN_TURN, apart).verdicts[0].reason is None
    each = f"f({THREE}):\n    for j in range(8):\n        B[j] = A[j]\n"
    by_all = each.replace("    for j", '    for tx in T.thread_binding(8, "threadIdx.x"):\n        for j')
    copied = compare(each, by_all.replace("        B[j]", "            B[j]"))
    assert copied.status is Status.PROVED and copied.verdicts[0].reason == "precondition: parameters do not overlap"
    with pytest.raises(lp.IllegalTransform, match="may overlap"):
        lp.Schedule(lp.loads(HEAD + BY_THREADS)).simplify()
    lp.Schedule(lp.loads(HEAD + apart)).simplify()
    noalias = '    T.func_attr({"tirx.noalias": True})\n    for tx'
    lp.Schedule(lp.loads(HEAD + BY_THREADS.replace("    for tx", noalias))).simplify()


def test_pointers_into_a_kernel_are_not_understood() -> None:
    """Threads that store to one memory by two names meet, though the names do not."""
    whole = THREE.replace("float32", "int32")
    head = f'({whole}):\n    T.func_attr({{"tirx.noalias": True}})\n'
    plain = f"plain{head}    for i in range(8):\n        B[i] = 1\n    for i in range(8):\n        B[7 - i] = i\n"
    plain += "    for i in range(8):\n        A[i] = 3\n"
    threads = f'    for tx in T.thread_binding(8, "threadIdx.x"):\n        B[tx] = 1\n{SYNC}'
    threads += f"        for j in range(8):\n            V[7 - j] = j\n{SYNC}        A[tx] = 3\n"
    pointer = '    p: T.let[T.handle("int32")] = T.pointer_cast("int32", B.data)\n'
    pointer += '    V = T.decl_buffer((8,), "int32", data=p)\n'
    assert compare(plain, f"threads{head}{threads.replace('V[', 'B[')}").status is Status.PROVED
    found = compare(plain, f"threads{head}{pointer}{threads.replace(SYNC, '', 1)}")
    assert found.status is Status.UNKNOWN and "a pointer" in str(found.verdicts[0].reason)


FOUR = 'A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")'
STORES = {
    "blocks": ("B[0] = A[0]", 'T.launch_thread("blockIdx.x", 4)\n    B[0] = A[0]', Status.UNKNOWN),
    "threads": ("B[0] = A[0]", 'T.launch_thread("threadIdx.x", 4)\n    B[0] = A[0]', Status.PROVED),
    "stores in a phase": (
        "B[0] = A[0]\n    B[1] = T.float32(5)",
        'T.launch_thread("threadIdx.x", 4)\n    B[0] = A[0]\n    B[1] = T.float32(5)',
        Status.UNKNOWN,
    ),
    "other values": ("B[0] = A[3]", 'x = T.launch_thread("blockIdx.x", 4)\n    B[0] = A[x]', Status.REFUTED),
    "other statements": (
        "B[0] = A[0]",
        'T.launch_thread("threadIdx.x", 4)\n    B[0] = A[1]\n    B[0] = A[0]',
        Status.REFUTED,
    ),
}


@pytest.mark.parametrize("what", STORES)
def test_threads_that_store_one_value(what: str) -> None:
    """By one statement they are no race, so that none refutes the kernel; by others, or of other values, they are."""
    plain, kernel, wanted = STORES[what]
    head = f'f({FOUR}):\n    T.func_attr({{"tirx.noalias": True}})\n    '
    assert compare(f"{head}{plain}\n", f"{head}{kernel}\n").status is wanted


ROWS = 'A: T.Buffer((8,), "float32"), B: T.Buffer((4, 8), "float32")'
COPIED = f"""plain({ROWS}):
    T.func_attr({{"tirx.noalias": True}})
    for k, i in T.grid(4, 8):
        B[k, i] = A[i]
"""
IN_A_LOOP = f"""kernel({ROWS}):
    T.func_attr({{"tirx.noalias": True}})
    tx = T.launch_thread("threadIdx.x", 8)
    for k in range(4):
        S = T.decl_buffer((8,), "float32", scope="SCOPE")
        if CONDITION:
            S[tx] = A[tx]
        T.tvm_storage_sync("shared")
        B[k, tx] = S[tx]
        T.tvm_storage_sync("shared")
"""


@pytest.mark.parametrize("scope", ["shared", "local"])
@pytest.mark.parametrize(("condition", "wanted"), [("k < 4", Status.PROVED), ("k < 1", Status.REFUTED)])
def test_memory_that_is_allocated_in_a_loop(scope: str, condition: str, wanted: Status) -> None:
    """It is new in each iteration, in a kernel as elsewhere."""
    kernel = IN_A_LOOP.replace("SCOPE", scope).replace("CONDITION", condition)
    assert compare(COPIED, kernel).status is wanted


SUM_OF_THREADS = """kernel(A: T.Buffer((4, 32), "int32"), B: T.Buffer((4,), "int32")):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 32)
    R = T.decl_buffer((1,), "int32", scope="local")
    with T.attr(T.comm_reducer(lambda x, y: x + y, [T.int32(5)]), "reduce_scope", T.reinterpret("handle", T.uint64(0))):
        T.tvm_thread_allreduce(T.uint32(1), A[bx, tx], T.bool(True), R[0], tx)
    B[bx] = R[0]
"""
SERIAL_SUM = """plain(A: T.Buffer((4, 32), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        B[i] = 5
        for k in range(32):
            B[i] = B[i] + A[i, k]
"""


def test_a_start_that_threads_may_leave_out() -> None:
    """The identity of a reduction over threads is joined where a thread has no value, and else it may not be."""
    assert compare(SERIAL_SUM, SUM_OF_THREADS).status is Status.UNKNOWN
    neutral = SERIAL_SUM.replace("= 5", "= 0"), SUM_OF_THREADS.replace("T.int32(5)", "T.int32(0)")
    assert compare(*neutral).status is Status.PROVED
    most = [text.replace("x + y", "T.max(x, y)").replace("B[i] + A[i, k]", "T.max(B[i], A[i, k])") for text in neutral]
    assert compare(*most).status is Status.UNKNOWN
    least = "T.int32(-2147483648)"
    assert compare(most[0].replace("= 0", f"= {least}"), most[1].replace("T.int32(0)", least)).status is Status.PROVED


COUNTED = """counted(N: T.Buffer((1,), "int32"), A: T.Buffer((32,), "int32"), C: T.Buffer((32,), "int32")):
    T.func_attr({"tirx.noalias": True})
    if 0 < N[0]:
        N[0] = 3
        for t in range(N[0]):
            if t < 32:
                C[t] = A[t]
"""
LAUNCHED = """launched(N: T.Buffer((1,), "int32"), A: T.Buffer((32,), "int32"), C: T.Buffer((32,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for t in T.thread_binding(N[0], thread="threadIdx.x"):
        N[0] = 3
        T.tvm_storage_sync("shared")
        if t < 32:
            C[t] = A[t]
"""


def test_the_number_of_threads_is_found_once() -> None:
    """What a kernel stores changes nothing about how many threads it has."""
    assert compare(COUNTED, LAUNCHED).status is Status.UNKNOWN
    kept = [text.replace("    N[0] = 3\n", "    C[0] = A[0]\n") for text in (COUNTED, LAUNCHED)]
    assert compare(*kept).status is Status.PROVED


GREATEST = """greatest(A: T.Buffer((32,), "float32"), C: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    C[0] = START
    for k in range(32):
        C[0] = T.max(C[0], A[k])
"""
GREATEST_ACROSS = """across(A: T.Buffer((32,), "float32"), C: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    tx = T.launch_thread("threadIdx.x", 32)
    L = T.decl_buffer((1,), "float32", scope="local")
    with T.attr(T.comm_reducer(lambda x, y: T.max(x, y), [START]), "reduce_scope", T.int32(0)):
        T.tvm_thread_allreduce(T.uint32(1), A[tx], T.bool(True), L[0], tx)
    C[0] = L[0]
"""


@pytest.mark.parametrize(
    ("start", "fast_math"),
    [('T.float32("-inf")', {"nnan", "nsz"}), ('T.min_value("float32")', {"nnan", "ninf", "nsz"})],
)
def test_threads_may_leave_out_where_a_maximum_starts(start: str, fast_math: set[str]) -> None:
    """If all elements are minus infinity, the least finite number is the result only where it is joined to them."""
    found = compare(*(text.replace("START", start) for text in (GREATEST, GREATEST_ACROSS)))
    assert (found.status, set(found.strictness)) == (Status.PROVED, fast_math)


@pytest.mark.parametrize("what", ["A[t + 5]", "1 // A[t]", "C[31 - t]"])
def test_what_is_evaluated_for_nothing_may_fault(what: str) -> None:
    """A load out of bounds, an operation without a result and a race are faults, whatever becomes of the value."""
    text = """f(A: T.Buffer((32,), "int32"), C: T.Buffer((32,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for t in LOOP:
        T.evaluate(0)
        C[t] = A[t]
"""
    before = text.replace("LOOP", "range(32)")
    after = text.replace("LOOP", 'T.thread_binding(32, thread="threadIdx.x")')
    assert compare(before, after).status is Status.PROVED
    assert compare(before, after.replace("evaluate(0)", f"evaluate({what})")).status is not Status.PROVED


@pytest.mark.parametrize(
    ("domain", "expected"), [("32", Status.PROVED), ("16", Status.UNKNOWN), ("(1, 32)", Status.UNKNOWN)]
)
def test_block_variables_of_kernels_stay_in_their_domains(domain: str, expected: Status) -> None:
    """As those of loops have to: what TVM makes of a block rests on them."""
    head = 'f(A: T.Buffer((32,), "int32"), C: T.Buffer((32,), "int32")):\n    T.func_attr({"tirx.noalias": True})\n'
    loop = head + "    for i in range(32):\n        C[i] = A[i]\n"
    kernel = (
        '    for i in T.thread_binding(32, thread="threadIdx.x"):\n        with T.block("copy"):\n'
        f"            v = T.axis.spatial({domain}, i)\n            C[v] = A[v]\n"
    )
    assert compare(loop, head + kernel).status is expected


@pytest.mark.parametrize(
    ("strides", "expected"), [("32, 1", Status.PROVED), ("16, 1", Status.UNKNOWN), ("32, 2", Status.UNKNOWN)]
)
def test_views_in_kernels_lie_as_they_say(strides: str, expected: Status) -> None:
    """A view with constant strides that its region does not have is none of that region."""
    head = (
        'f(A: T.Buffer((32, 32), "int32"), C: T.Buffer((16, 16), "int32")):\n    T.func_attr({"tirx.noalias": True})\n'
    )
    loop = head + "    for i, j in T.grid(16, 16):\n        C[i, j] = A[i, j]\n"
    kernel = (
        '    for i in T.thread_binding(16, thread="threadIdx.x"):\n        with T.block("copy"):\n'
        "            v = T.axis.spatial(16, i)\n"
        f'            X = T.match_buffer(A[0:16, 0:16], (16, 16), "int32", strides=({strides}), offset_factor=1)\n'
        "            for j in range(16):\n                C[v, j] = X[v, j]\n"
    )
    assert compare(loop, head + kernel).status is expected
