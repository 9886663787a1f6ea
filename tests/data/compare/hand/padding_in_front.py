# An element-wise function of 14 elements that are stored from the third place on.
# expect: proved
# layout: X=lambda i: [(i + 2)//8, (i + 2)%8]
# layout: Y=lambda i: [(i + 2)//8, (i + 2)%8]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(X: T.Buffer((14,), "float32"), Y: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        Y[i] = T.exp(X[i])


@T.prim_func(s_tir=True)
def after(X: T.Buffer((2, 8), "float32"), Y: T.Buffer((2, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for io, ii in T.grid(2, 8):
        if 1 < io * 8 + ii:
            Y[io, ii] = T.exp(X[io, ii])
