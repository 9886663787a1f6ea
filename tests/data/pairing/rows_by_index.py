# Rows that an index chooses, in another order of loops.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((100, 8), "float32"), idx: T.Buffer((16,), "int32"), C: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 8):
        C[i, j] = A[T.max(0, T.min(99, idx[i])), j]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((100, 8), "float32"), idx: T.Buffer((16,), "int32"), C: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for j, i in T.grid(8, 16):
        C[i, j] = A[T.max(0, T.min(99, idx[i])), j]
