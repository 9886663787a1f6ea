# about: a sum is initialised again in the middle
# clause: order
# expect: refuted
# theta: 0 -> 0: lambda k, i: [i] where k == 2
# theta: 1 -> 1: lambda k, i: [k, i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(4):
        B[i] = 0
    for k in range(4):
        for i in range(4):
            B[i] = B[i] + A[i, k]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for k in range(4):
        for i in range(4):
            if k == 2:
                B[i] = 0
        for i in range(4):
            B[i] = B[i] + A[i, k]
