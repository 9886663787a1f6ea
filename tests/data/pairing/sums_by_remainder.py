# Sums that one loop adds to in turn.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((64,), "float32"), C: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        C[i] = T.float32(0)
    for f in range(64):
        C[f % 8] = C[f % 8] + A[f]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((64,), "float32"), C: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        C[i] = T.float32(0)
        for k in range(8):
            C[i] = C[i] + A[k*8 + i]
