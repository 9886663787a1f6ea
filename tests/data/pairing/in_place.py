# Two passes over an output in one, columns first.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 8):
        A[i, j] = A[i, j] + T.float32(1)
    for i, j in T.grid(16, 8):
        A[i, j] = A[i, j] * T.float32(2)


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for j, i in T.grid(8, 16):
        A[i, j] = (A[i, j] + T.float32(1)) * T.float32(2)
