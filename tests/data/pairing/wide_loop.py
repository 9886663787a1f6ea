# One loop of int64 against two of int32.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 8):
        C[i, j] = T.exp(A[i, j])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for f in T.serial(T.int64(128)):
        C[f // T.int64(8), f % T.int64(8)] = T.exp(A[f // T.int64(8), f % T.int64(8)])
