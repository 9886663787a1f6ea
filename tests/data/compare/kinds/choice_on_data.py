# A choice that depends on what is loaded, eager against lazy, with its sides exchanged.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 8):
        B[i, j] = T.Select(A[i, j] < T.float32(0), T.float32(0), A[i, j])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 8):
        B[i, j] = T.if_then_else(not A[i, j] < T.float32(0), A[i, j], T.float32(0))
