from tvm.script import tir as T


@T.prim_func
def attention(
    Q: T.Buffer((8, 12), "float32"),
    K: T.Buffer((10, 12), "float32"),
    V: T.Buffer((10, 6), "float32"),
    O: T.Buffer((8, 6), "float32"),
):
    T.func_attr({"tir.noalias": True})
    score = T.alloc_buffer((8, 10), "float32")
    most = T.alloc_buffer((8,), "float32")
    weight = T.alloc_buffer((8, 10), "float32")
    total = T.alloc_buffer((8,), "float32")
    for i, j, d in T.grid(8, 10, 12):
        with T.block("scores"):
            vi, vj, vd = T.axis.remap("SSR", [i, j, d])
            with T.init():
                score[vi, vj] = T.float32(0)
            score[vi, vj] = score[vi, vj] + Q[vi, vd] * K[vj, vd] * T.float32(0.28125)
    for i, j in T.grid(8, 10):
        with T.block("max"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                most[vi] = T.min_value("float32")
            most[vi] = T.max(most[vi], score[vi, vj])
    for i, j in T.grid(8, 10):
        with T.block("exp"):
            vi, vj = T.axis.remap("SS", [i, j])
            weight[vi, vj] = T.exp(score[vi, vj] - most[vi])
    for i, j in T.grid(8, 10):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + weight[vi, vj]
    for i, d, j in T.grid(8, 6, 10):
        with T.block("values"):
            vi, vd, vj = T.axis.remap("SSR", [i, d, j])
            with T.init():
                O[vi, vd] = T.float32(0)
            O[vi, vd] = O[vi, vd] + weight[vi, vj] / total[vi] * V[vj, vd]
