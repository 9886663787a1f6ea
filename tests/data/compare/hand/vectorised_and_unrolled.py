# Each row is two stores of four lanes, with commuted operands, in a parallel loop.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 8):
        B[i, j] = A[i, j] * T.float32(2) + T.float32(1)


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in T.parallel(16):
        B[i, 0:4] = A[i, 0:4] * T.Broadcast(T.float32(2), 4) + T.Broadcast(T.float32(1), 4)
        B[i, 4:8] = T.Broadcast(T.float32(1), 4) + A[i, 4:8] * T.Broadcast(T.float32(2), 4)
