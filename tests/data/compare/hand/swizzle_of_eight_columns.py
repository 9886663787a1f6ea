# The columns of each row of eight are exchanged by an exclusive or with the row's number, three bits.
# expect: proved
# layout: B=lambda i, j: [i, (j % 8) ^ (i % 8), 0]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 8):
        B[i, j] = A[i, j] * T.float32(2)


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8, 1), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 8):
        B[i, T.bitwise_xor(j % 8, i % 8), 0] = A[i, j] * T.float32(2)
