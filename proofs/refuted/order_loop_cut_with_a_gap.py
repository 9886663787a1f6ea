# about: a loop is cut in two, and the second part begins one iteration late
# clause: order
# expect: refuted
# theta: 0 -> 0: lambda i: [i]
# theta: 1 -> 0: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "int32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        B[0] = B[0] * 3 + A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "int32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(12):
        B[0] = B[0] * 3 + A[i]
    for i in T.serial(13, 16):
        B[0] = B[0] * 3 + A[i]
