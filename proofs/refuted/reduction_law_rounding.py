# about: a sum of floats in another order is another sum, unless regrouping is allowed
# clause: reduction-law
# expect: refuted
# strictness: nnan ninf nsz
# theta: 0 -> 0: lambda: []
# theta: 1 -> 1: lambda k: [7 - k]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    B[0] = T.float32(0)
    for k in range(8):
        B[0] = B[0] + A[k]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    B[0] = T.float32(0)
    for k in range(8):
        B[0] = B[0] + A[7 - k]
