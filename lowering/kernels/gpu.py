"""Reference schedules for GPUs, for all sizes: tiles in shared memory, results in registers, reductions over threads.

Every step is proved; each function gives the schedule as far as its blocks go. `lowered` does what comes after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from layoutproof.ir.script.reader import loads
from layoutproof.lowering.layout.transform_layout import ROOT
from layoutproof.lowering.schedule.schedule import Schedule

_HEAD = """from tvm.script import tir as T

@T.prim_func
def {name}({handles}):
    T.func_attr({{"tirx.noalias": True}})
"""

_MATMUL = """    n, m, l = T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (n * 64, l * 8), "float32")
    B = T.match_buffer(b, (l * 8, m * 64), "float32")
    C = T.match_buffer(c, (n * 64, m * 64), "float32")
    T.evaluate(T.assume(l >= 1))
    for i, j, k in T.grid(n * 64, m * 64, l * 8):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""

_SOFTMAX = """    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m * 32), "float32")
    B = T.match_buffer(b, (n, m * 32), "float32")
    largest = T.alloc_buffer((n,), "float32")
    power = T.alloc_buffer((n, m * 32), "float32")
    total = T.alloc_buffer((n,), "float32")
    T.evaluate(T.assume(m >= 1))
    for i, k in T.grid(n, m * 32):
        with T.block("max"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                largest[vi] = T.min_value("float32")
            largest[vi] = T.max(largest[vi], A[vi, vk])
    for i, k in T.grid(n, m * 32):
        with T.block("exp"):
            vi, vk = T.axis.remap("SS", [i, k])
            power[vi, vk] = T.exp(A[vi, vk] - largest[vi])
    for i, k in T.grid(n, m * 32):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + power[vi, vk]
    for i, k in T.grid(n, m * 32):
        with T.block("norm"):
            vi, vk = T.axis.remap("SS", [i, k])
            B[vi, vk] = power[vi, vk] / total[vi]
"""

_TRANSPOSE = """    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n * 32, m * 32), "float32")
    B = T.match_buffer(b, (m * 32, n * 32), "float32")
    for i, j in T.grid(m * 32, n * 32):
        with T.block("turn"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi]
"""

_CONV2D = """    ci, co, h, w = T.int32(), T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (ci, h * 8 + 2, w * 8 + 2, 4), "float32")
    B = T.match_buffer(b, (co, ci, 3, 3, 4, 4), "float32")
    C = T.match_buffer(c, (co, h * 8, w * 8, 4), "float32")
    T.evaluate(T.assume(ci >= 1))
    for o, y, x, r, i, p, q, k in T.grid(co, h * 8, w * 8, 4, ci, 3, 3, 4):
        with T.block("conv"):
            vo, vy, vx, vc, vi, vp, vq, vk = T.axis.remap("SSSSRRRR", [o, y, x, r, i, p, q, k])
            with T.init():
                C[vo, vy, vx, vc] = T.float32(0)
            C[vo, vy, vx, vc] = C[vo, vy, vx, vc] + A[vi, vy + vp, vx + vq, vk] * B[vo, vi, vp, vq, vk, vc]
"""


def _schedule(name: str, text: str, handles: str) -> Schedule:
    return Schedule(loads(_HEAD.format(name=name, handles=handles) + text, f"{name}.py"))


_TWO = "a: T.handle, b: T.handle"
_THREE = "a: T.handle, b: T.handle, c: T.handle"


def matmul_on_threads() -> Schedule:
    """`C = A @ B` of `(64*n, 8*l)` and `(8*l, 64*m)` float32: a block of 16 x 16 threads makes a tile of 64 x 64, each
    of them 4 x 4 of it in registers, from tiles of both factors in shared memory.
    """
    return tiled_product(_schedule("matmul", _MATMUL, _THREE), threads=16, each=4, depth=8)


def tiled_product(s: Schedule, *, threads: int, each: int, depth: int) -> Schedule:
    """The schedule of a product `C[i, j] += A[i, k] * B[k, j]` (block `product`): blocks of `threads` x `threads`, each
    of which makes `each` x `each` cells in registers, `depth` steps of `k` at a time from tiles in shared memory.
    """
    s.cache_write("product", "C", "local")
    s.cache_read("product", "A", "shared")
    s.cache_read("product", "B", "shared")
    s.split("product", "i", (None, threads, each))
    s.split("product", "j", (None, threads, each))
    s.split("product", "k", (None, depth))
    s.reorder("product", ("i_0", "j_0", "i_1", "j_1", "k_0", "k_1", "i_2", "j_2"))
    for loop, axis in (("i_0", "blockIdx.y"), ("j_0", "blockIdx.x"), ("i_1", "threadIdx.y"), ("j_1", "threadIdx.x")):
        s.bind("product", loop, axis)
    s.reverse_compute_at("C_local", "product", "j_1")
    for tile in ("A_shared", "B_shared"):
        s.compute_at(tile, "product", "k_0")
        together(s, tile, 2, {"threadIdx.y": threads, "threadIdx.x": threads})
    s.decompose_reduction("product", "k_0")
    return s


def softmax_on_threads() -> Schedule:
    """The softmax of each row of a matrix `(n, 32*m)` of float32: one block for each row, its 32 threads find the
    largest element and the sum together.
    """
    s = _schedule("softmax", _SOFTMAX, _TWO)
    for buffer in ("largest", "power", "total"):
        s.set_scope(buffer, "shared")
    for block in ("sum", "exp", "max"):
        s.compute_at(block, "norm", "i")
    s.bind("norm", "i", "blockIdx.x")
    inner: list[str] = []
    for block in ("max", "exp", "sum", "norm"):
        s.split(block, s.get_loops(block)[-1], (None, 32))
        inner.append(s.get_loops(block)[-1])
    # All in one step: a reduction whose loop is not bound yet would be run by every thread.
    s.bind("max", inner[0], "threadIdx.x", tuple(inner[1:]))
    return s


def transpose_on_threads() -> Schedule:
    """`B = A.T` of `(32*n, 32*m)` float32, 8 x 32 threads a tile: both matrices are accessed along their rows, and the
    tile in shared memory along its rows and columns.
    """
    s = _schedule("transpose", _TRANSPOSE, _TWO)
    s.cache_read("turn", "A", "shared")
    s.split("turn", "i", (None, 4, 8))
    s.split("turn", "j", (None, 32))
    s.reorder("turn", ("i_0", "j_0", "i_1", "i_2", "j_1"))
    s.bind("turn", "i_0", "blockIdx.y")
    s.bind("turn", "j_0", "blockIdx.x")
    s.compute_at("A_shared", "turn", "j_0")
    s.split("A_shared", "ax0", (4, 8))
    s.bind("turn", "i_2", "threadIdx.y", ("ax0_1",))
    s.bind("turn", "j_1", "threadIdx.x", ("ax1",))
    return s


def conv2d_on_threads() -> Schedule:
    """A 3 x 3 convolution in NCHW4c, `co` blocks of channels from `ci`, `8*h` rows of `8*w`: a block of 2 x 8 threads
    for a tile of a block of channels, each of which makes four pixels of four channels in registers.
    """
    s = _schedule("conv2d", _CONV2D, _THREE)
    s.cache_write("conv", "C", "local")
    s.cache_read("conv", "A", "shared")
    s.cache_read("conv", "B", "shared")
    s.split("conv", "y", (None, 2, 4))
    s.split("conv", "x", (None, 8))
    s.reorder("conv", ("o", "y_0", "x_0", "y_1", "x_1", "i", "p", "q", "k", "y_2", "r"))
    bound = {"o": "blockIdx.z", "y_0": "blockIdx.y", "x_0": "blockIdx.x", "y_1": "threadIdx.y", "x_1": "threadIdx.x"}
    for loop, axis in bound.items():
        s.bind("conv", loop, axis)
    s.reverse_compute_at("C_local", "conv", "x_1")
    for tile, axes in (("A_shared", 3), ("B_shared", 4)):
        s.compute_at(tile, "conv", "i")
        together(s, tile, axes, {"threadIdx.y": 2, "threadIdx.x": 8})
    s.decompose_reduction("conv", "i")
    return s


def together(s: Schedule, block: str, axes: int, threads: Mapping[str, int]) -> None:
    """Have the threads of a block share the work of a block of the program: the last `axes` of its loops."""
    s.fuse(block, s.get_loops(block)[-axes:])
    s.split(block, s.get_loops(block)[-1], (None, *threads.values()))
    for loop, axis in zip(s.get_loops(block)[-len(threads) :], threads, strict=True):
        s.bind(block, loop, axis)


def lowered(s: Schedule, homes: Mapping[str, Sequence[str]]) -> Schedule:
    """The schedule with barriers, without blocks but for reductions over threads, and with each buffer of `homes`, by
    loop in which it lives, as large as what an iteration of that loop touches.
    """
    s.thread_sync()
    s.lower_blocks()
    for loop, buffers in homes.items():
        for buffer in buffers:
            s.sink_allocation(buffer, ROOT, loop)
            s.compact_buffer(buffer)
    s.simplify()
    return s
