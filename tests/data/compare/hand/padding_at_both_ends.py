# The same with padding behind, too.
# expect: proved
# layout: X=lambda i: [(i + 3)//8, (i + 3)%8]
# layout: Y=lambda i: [(i + 3)//8, (i + 3)%8]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(X: T.Buffer((14,), "float32"), Y: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        Y[i] = T.exp(X[i])


@T.prim_func(s_tir=True)
def after(X: T.Buffer((4, 8), "float32"), Y: T.Buffer((4, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for io, ii in T.grid(4, 8):
        if 3 <= io * 8 + ii and io * 8 + ii < 17:
            Y[io, ii] = T.exp(X[io, ii])
