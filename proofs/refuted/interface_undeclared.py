# about: a result is transposed and callers are not told
# clause: interface
# expect: refuted
# cells: B_data -> B_data: lambda i, j: [j, i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(4, 4):
        B[i, j] = A[i, j]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(4, 4):
        B[j, i] = A[i, j]
