# The parameters stand in another order, under other names: who compares says which is which.
# expect: proved
# match: left=A
# match: right=B
# match: out=C
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32"), C: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 8):
        C[i, j] = A[i, j] - B[i, j]


@T.prim_func(s_tir=True)
def after(right: T.Buffer((16, 8), "float32"), left: T.Buffer((16, 8), "float32"), out: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 8):
        out[i, j] = left[i, j] - right[i, j]
