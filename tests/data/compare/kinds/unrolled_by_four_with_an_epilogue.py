# Four stores in each of three iterations, and the last two elements behind them.
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
    for i in range(3):
        B[i*4] = T.exp(A[i*4])
        B[i*4 + 1] = T.exp(A[i*4 + 1])
        B[i*4 + 2] = T.exp(A[i*4 + 2])
        B[i*4 + 3] = T.exp(A[i*4 + 3])
    for i in range(2):
        B[12 + i] = T.exp(A[12 + i])
