# about: every iteration of a parallel loop stores what one cell holds already
# clause: races
# expect: refuted
# theta: 0 -> 0: lambda i: [i]
# theta: 1 -> none
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in T.parallel(8):
        B[i] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in T.parallel(8):
        B[i] = A[i]
        B[0] = B[0]
