# Cells that an index chooses are written, in two loops for one.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), idx: T.Buffer((16,), "int32"), C: T.Buffer((100,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        C[T.max(0, T.min(99, idx[i]))] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), idx: T.Buffer((16,), "int32"), C: T.Buffer((100,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for io, ii in T.grid(4, 4):
        C[T.max(0, T.min(99, idx[io*4+ii]))] = A[io*4+ii]
