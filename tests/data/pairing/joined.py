# Two parameters joined, by way of a transposed temporary.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4, 8), "float32"), B: T.Buffer((6, 8), "float32"), C: T.Buffer((10, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(10, 8):
        C[i, j] = T.if_then_else(i < 4, A[i, j], B[i - 4, j])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4, 8), "float32"), B: T.Buffer((6, 8), "float32"), C: T.Buffer((10, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    t = T.alloc_buffer((8, 10), "float32")
    for j, i in T.grid(8, 4):
        t[j, i] = A[i, j]
    for j, i in T.grid(8, 6):
        t[j, i + 4] = B[i, j]
    for i, j in T.grid(10, 8):
        C[i, j] = t[j, i]
