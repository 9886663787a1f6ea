# about: two loops change places across a dependence that turns around
# clause: order
# expect: refuted
# theta: 0 -> 0: lambda j, i: [i, j]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((5, 5), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(4, 4):
        A[i + 1, j] = A[i, j + 1] + 1


@T.prim_func(s_tir=True)
def after(A: T.Buffer((5, 5), "int32")):
    T.func_attr({"tirx.noalias": True})
    for j, i in T.grid(4, 4):
        A[i + 1, j] = A[i, j + 1] + 1
