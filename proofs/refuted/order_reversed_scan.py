# about: a running sum is walked from its end
# clause: order
# expect: refuted
# theta: 0 -> 0: lambda i: [7 - i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "int32"), B: T.Buffer((9,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[i + 1] = B[i] + A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "int32"), B: T.Buffer((9,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[8 - i] = B[7 - i] + A[7 - i]
