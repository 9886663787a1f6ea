# First the elements at even places, then those at odd ones.
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
    for i in range(7):
        B[i*2] = T.exp(A[i*2])
    for i in range(7):
        B[i*2 + 1] = T.exp(A[i*2 + 1])
