from tvm.script import tir as T


@T.prim_func
def group_norm(
    A: T.Buffer((2, 6, 15), "float32"),
    G: T.Buffer((6,), "float32"),
    B: T.Buffer((6,), "float32"),
    O: T.Buffer((2, 6, 15), "float32"),
):
    T.func_attr({"tir.noalias": True})
    total = T.alloc_buffer((2, 3), "float32")
    squares = T.alloc_buffer((2, 3), "float32")
    for n, g, c, k in T.grid(2, 3, 2, 15):
        with T.block("sum"):
            vn, vg, vc, vk = T.axis.remap("SSRR", [n, g, c, k])
            with T.init():
                total[vn, vg] = T.float32(0)
            total[vn, vg] = total[vn, vg] + A[vn, vg * 2 + vc, vk]
    for n, g, c, k in T.grid(2, 3, 2, 15):
        with T.block("square"):
            vn, vg, vc, vk = T.axis.remap("SSRR", [n, g, c, k])
            with T.init():
                squares[vn, vg] = T.float32(0)
            squares[vn, vg] = squares[vn, vg] + (A[vn, vg * 2 + vc, vk] - total[vn, vg] / T.float32(30)) * (A[vn, vg * 2 + vc, vk] - total[vn, vg] / T.float32(30))
    for n, c, k in T.grid(2, 6, 15):
        with T.block("norm"):
            vn, vc, vk = T.axis.remap("SSS", [n, c, k])
            O[vn, vc, vk] = (A[vn, vc, vk] - total[vn, vc // 2] / T.float32(30)) * T.rsqrt(squares[vn, vc // 2] / T.float32(30) + T.float32(0.001)) * G[vc] + B[vc]
