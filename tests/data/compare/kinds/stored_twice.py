# Every element is zeroed first, then all are stored again: the zeros are overwritten before anybody sees them.
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
    for i in range(14):
        B[i] = T.float32(0)
    for i in range(14):
        B[i] = T.exp(A[i])
