# A mean over a window with zeros around, divided by the number of real elements.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(X: T.Buffer((14,), "float32"), Y: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    S = T.sblock_alloc_buffer((14,), "float32")
    for o in range(14):
        S[o] = T.float32(0)
        for t in range(3):
            S[o] = S[o] + T.if_then_else(1 <= o + t and o + t < 15, X[o + t - 1], T.float32(0))
    for o in range(14):
        Y[o] = S[o] / T.Cast("float32", T.min(o + 2, 14) - T.max(o - 1, 0))


@T.prim_func(s_tir=True)
def after(X: T.Buffer((14,), "float32"), Y: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    P = T.sblock_alloc_buffer((16,), "float32")
    for i in range(16):
        P[i] = T.if_then_else(1 <= i and i < 15, X[i - 1], T.float32(0))
    for o in range(14):
        Y[o] = T.float32(0)
        for t in range(3):
            Y[o] = Y[o] + P[o + t]
        Y[o] = Y[o] / T.Cast("float32", T.min(o + 2, 14) - T.max(o - 1, 0))
