# Loops that begin at 1 and at 2, against a loop from 0.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        B[i] = T.exp(A[i])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(1, 15):
        if i < 8:
            B[i - 1] = T.exp(A[i - 1])
    for i in range(9, 16):
        B[i - 2] = T.exp(A[i - 2])
