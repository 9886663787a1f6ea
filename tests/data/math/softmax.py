from tvm.script import tir as T


@T.prim_func
def softmax(
    A: T.Buffer((16, 30), "float32"),
    O: T.Buffer((16, 30), "float32"),
):
    T.func_attr({"tir.noalias": True})
    most = T.alloc_buffer((16,), "float32")
    weight = T.alloc_buffer((16, 30), "float32")
    total = T.alloc_buffer((16,), "float32")
    for i, j in T.grid(16, 30):
        with T.block("max"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                most[vi] = T.min_value("float32")
            most[vi] = T.max(most[vi], A[vi, vj])
    for i, j in T.grid(16, 30):
        with T.block("exp"):
            vi, vj = T.axis.remap("SS", [i, j])
            weight[vi, vj] = T.exp(A[vi, vj] - most[vi])
    for i, j in T.grid(16, 30):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + weight[vi, vj]
    for i, j in T.grid(16, 30):
        with T.block("norm"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[vi, vj] = weight[vi, vj] / total[vi]
