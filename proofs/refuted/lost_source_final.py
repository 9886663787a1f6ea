# about: the last word on a result is a store that computes nothing of the old program
# clause: lost-source
# expect: refuted
# theta: 0 -> 0: lambda i: [i]
# theta: 1 -> none
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[i] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[i] = A[i]
    B[2] = T.float32(0)
