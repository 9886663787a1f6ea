# An index divided by a number that has three values.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(X: T.Buffer((12,), "float32"), Y: T.Buffer((12,), "float32"), m: T.int32):
    T.func_attr({"tirx.noalias": True})
    for i in range(12):
        Y[i] = X[i // (m % 3 + 1)]


@T.prim_func(s_tir=True)
def after(X: T.Buffer((12,), "float32"), Y: T.Buffer((12,), "float32"), m: T.int32):
    T.func_attr({"tirx.noalias": True})
    for io, ii in T.grid(3, 4):
        Y[io * 4 + ii] = X[(io * 4 + ii) // (m % 3 + 1)]
