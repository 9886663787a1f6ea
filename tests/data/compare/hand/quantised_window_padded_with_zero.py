# Padding that holds 0 and not the zero point.
# expect: refuted
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(X: T.Buffer((14,), "uint8"), W: T.Buffer((3,), "int8"), Y: T.Buffer((14,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for o in range(14):
        Y[o] = 0
        for t in range(3):
            Y[o] = Y[o] + T.if_then_else(1 <= o + t and o + t < 15, T.Cast("int32", X[o + t - 1]) - 7, 0) * T.Cast("int32", W[t])


@T.prim_func(s_tir=True)
def after(X: T.Buffer((14,), "uint8"), W: T.Buffer((3,), "int8"), Y: T.Buffer((14,), "int32")):
    T.func_attr({"tirx.noalias": True})
    Q = T.sblock_alloc_buffer((16,), "uint8")
    for i in range(16):
        Q[i] = T.if_then_else(1 <= i and i < 15, X[i - 1], T.uint8(0))
    for o in range(14):
        Y[o] = 0
        for t in range(3):
            Y[o] = Y[o] + (T.Cast("int32", Q[o + t]) - 7) * T.Cast("int32", W[t])
