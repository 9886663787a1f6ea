# about: a value that is computed once, and copied, is computed twice, with zeros of two signs
# clause: inlined-fast-math
# expect: unknown
# strictness: nsz
# theta: 0 -> 0: lambda: []
# theta: 1 -> 0: lambda: []
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(X: T.Buffer((1,), "float32"), Y: T.Buffer((1,), "float32"), U: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    Y[0] = T.float32(1) / (X[0] * T.float32(0))
    U[0] = Y[0]


@T.prim_func(s_tir=True)
def after(X: T.Buffer((1,), "float32"), Y: T.Buffer((1,), "float32"), U: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    Y[0] = T.float32(1) / (X[0] * T.float32(0))
    U[0] = T.float32(1) / (X[0] * T.float32(-0.0))
