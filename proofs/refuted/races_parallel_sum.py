# about: a sum into one cell is made parallel
# clause: races
# expect: refuted
# theta: 0 -> 0: lambda: []
# theta: 1 -> 1: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "int32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    B[0] = 0
    for i in range(8):
        B[0] = B[0] + A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "int32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    B[0] = 0
    for i in T.parallel(8):
        B[0] = B[0] + A[i]
