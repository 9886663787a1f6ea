# about: a sum in another order lacks one of its terms
# clause: contributions
# expect: refuted
# theta: 0 -> 0: lambda: []
# theta: 1 -> 1: lambda k: [6 - k]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "int32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    B[0] = 0
    for k in range(8):
        B[0] = B[0] + A[k]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "int32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    B[0] = 0
    for k in range(7):
        B[0] = B[0] + A[6 - k]
