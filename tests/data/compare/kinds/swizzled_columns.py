# The columns of each row are exchanged by an exclusive or with the row's number.
# expect: proved
# layout: B=lambda i, j: [i, (j % 4) ^ (i % 4), 0]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(8, 4):
        B[i, j] = A[i, j] * T.float32(2)


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4, 1), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(8, 4):
        B[i, T.bitwise_xor(j % 4, i % 4), 0] = A[i, j] * T.float32(2)
