# A temporary that holds exp(A) is gone: the exponential is computed at both places where it was loaded.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    E = T.alloc_buffer((16, 8), "float32")
    for i, j in T.grid(16, 8):
        E[i, j] = T.exp(A[i, j])
    for i, j in T.grid(16, 8):
        B[i, j] = E[i, j] * T.float32(2) + E[i, j]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 8):
        B[i, j] = T.exp(A[i, j]) * T.float32(2) + T.exp(A[i, j])
