# Padding by reflection: one choice against three loops.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "float32"), C: T.Buffer((12,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(12):
        C[i] = T.if_then_else(i < 2, A[2 - i], T.if_then_else(i < 10, A[i - 2], A[16 - i]))


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "float32"), C: T.Buffer((12,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        C[i + 2] = A[i]
    for i in range(2):
        C[i] = A[2 - i]
        C[10 + i] = A[6 - i]
