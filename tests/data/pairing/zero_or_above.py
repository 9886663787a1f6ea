# A choice on what is loaded, with the opposite condition.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        C[i] = T.Select(A[i] > T.float32(0), A[i], T.float32(0))


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(4, 4):
        C[i*4+j] = T.if_then_else(A[i*4+j] <= T.float32(0), T.float32(0), A[i*4+j])
