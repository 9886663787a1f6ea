# about: a parameter is said to have other groups of axes, and callers are not told
# clause: interface
# expect: unknown
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(4, 4):
        B[i, j] = A[i, j]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32", axis_separators=[1])):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(4, 4):
        B[i, j] = A[i, j]
