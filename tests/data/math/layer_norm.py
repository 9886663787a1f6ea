from tvm.script import tir as T


@T.prim_func
def layer_norm(
    A: T.Buffer((16, 30), "float32"),
    G: T.Buffer((30,), "float32"),
    B: T.Buffer((30,), "float32"),
    O: T.Buffer((16, 30), "float32"),
):
    T.func_attr({"tir.noalias": True})
    total = T.alloc_buffer((16,), "float32")
    squares = T.alloc_buffer((16,), "float32")
    for i, j in T.grid(16, 30):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + A[vi, vj]
    for i, j in T.grid(16, 30):
        with T.block("square"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                squares[vi] = T.float32(0)
            squares[vi] = squares[vi] + (A[vi, vj] - total[vi] / T.float32(30)) * (A[vi, vj] - total[vi] / T.float32(30))
    for i, j in T.grid(16, 30):
        with T.block("norm"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[vi, vj] = (A[vi, vj] - total[vi] / T.float32(30)) * T.rsqrt(squares[vi] / T.float32(30) + T.float32(0.001)) * G[vj] + B[vj]
