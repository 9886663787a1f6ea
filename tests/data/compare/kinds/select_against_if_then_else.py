# An eager choice against a lazy one: what either would choose from is computed without harm.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 8):
        B[i, j] = T.Select(j < 3, A[i, j] * T.float32(2), A[i, j] + T.float32(1))


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 8):
        B[i, j] = T.if_then_else(j < 3, A[i, j] * T.float32(2), A[i, j] + T.float32(1))
