# A temporary for each row against one for all.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    t = T.alloc_buffer((16, 8), "float32")
    for i, j in T.grid(16, 8):
        t[i, j] = T.exp(A[i, j])
    for i, j in T.grid(16, 8):
        C[i, j] = t[i, j] + t[i, 7 - j]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        with T.sblock("x"):
            vi = T.axis.spatial(16, i)
            t = T.sblock_alloc_buffer((8,), "float32")
            for j in range(8):
                t[j] = T.exp(A[vi, j])
            for j in range(8):
                C[vi, j] = t[j] + t[7 - j]
