# about: an addition that may change the sign of a zero is deleted, and the reciprocal of the constant zero after it is taken for what it was
# clause: zero-sign
# expect: refuted
# strictness: nsz
# theta: 0 -> 0: lambda: []
# theta: 1 -> none
# theta: 2 -> 1: lambda: []
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((1,), "float32"), B: T.Buffer((1,), "float32"), C: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    B[0] = T.float32(-0.0)
    C[0] = T.min(T.float32(7), T.float32(1) / B[0])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((1,), "float32"), B: T.Buffer((1,), "float32"), C: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    B[0] = T.float32(-0.0)
    B[0] = B[0] + T.float32(0)
    C[0] = T.min(T.float32(7), T.float32(1) / B[0])
