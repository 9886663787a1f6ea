# about: a maximum walked backwards differs where an element is NaN
# clause: reduction-law
# expect: refuted
# strictness: nsz
# theta: 0 -> 0: lambda: []
# theta: 1 -> 1: lambda k: [3 - k]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4,), "float32"), B: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    B[0] = T.float32(0)
    for k in range(4):
        B[0] = T.max(B[0], A[k])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4,), "float32"), B: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    B[0] = T.float32(0)
    for k in range(4):
        B[0] = T.max(B[0], A[3 - k])
