# Vectors of eight lanes against two of four.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 2):
        C[i, j*4:j*4+4] = A[i, j*4:j*4+4] * T.Broadcast(T.float32(2), 4)


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        C[i, 0:8] = A[i, 0:8] * T.Broadcast(T.float32(2), 8)
