# A sum over exponentials of padded tiles in a loop of its own: the padding is computed, and masked.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(X: T.Buffer((14,), "float32"), Y: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    E = T.sblock_alloc_buffer((14,), "float32")
    for i in range(14):
        E[i] = T.exp(X[i])
    Y[0] = T.float32(0)
    for i in range(14):
        Y[0] = Y[0] + E[i]


@T.prim_func(s_tir=True)
def after(X: T.Buffer((14,), "float32"), Y: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    P = T.sblock_alloc_buffer((4, 4), "float32")
    E = T.sblock_alloc_buffer((4, 4), "float32")
    for io, ii in T.grid(4, 4):
        P[io, ii] = T.if_then_else(io * 4 + ii < 14, X[io * 4 + ii], T.min_value("float32"))
    for io, ii in T.grid(4, 4):
        E[io, ii] = T.exp(P[io, ii])
    Y[0] = T.float32(0)
    for io, ii in T.grid(4, 4):
        Y[0] = Y[0] + T.if_then_else(io * 4 + ii < 14, E[io, ii], T.float32(0))
