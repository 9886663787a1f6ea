# about: what IEEE calls equal to zero may be -0.0, and subtracting that from -0.0 gives +0.0
# clause: values
# expect: refuted
# strictness: ieee
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(V: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for k in range(8):
        if V[k] != T.float32(0):
            B[0] = B[0] - V[k]


@T.prim_func(s_tir=True)
def after(V: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for k in range(8):
        B[0] = B[0] - V[k]
