# The bias is added with every term.
# expect: refuted
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8, 12), "float32"), W: T.Buffer((6, 12), "float32"), C: T.Buffer((6,), "float32"), D: T.Buffer((8, 6), "float32")):
    T.func_attr({"tirx.noalias": True})
    S = T.sblock_alloc_buffer((8, 6), "float32")
    for i, j, k in T.grid(8, 6, 12):
        with T.sblock("S"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                S[vi, vj] = T.float32(0)
            S[vi, vj] = S[vi, vj] + A[vi, vk] * W[vj, vk]
    for i, j in T.grid(8, 6):
        D[i, j] = S[i, j] + C[j]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8, 12), "float32"), W: T.Buffer((6, 12), "float32"), C: T.Buffer((6,), "float32"), D: T.Buffer((8, 6), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(8, 6):
        D[i, j] = T.float32(0)
        for k in range(12):
            D[i, j] = D[i, j] + (A[i, k] * W[j, k] + C[j])
