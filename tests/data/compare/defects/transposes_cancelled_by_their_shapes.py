# A transposition was dropped with a copy because both have the shape 6 by 6.
# expect: refuted
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((6, 6), "float32"), B: T.Buffer((6, 6), "float32")):
    T.func_attr({"tirx.noalias": True})
    T_1 = T.alloc_buffer((6, 6), "float32")
    for i, j in T.grid(6, 6):
        T_1[i, j] = A[j, i]
    for i, j in T.grid(6, 6):
        B[i, j] = T_1[i, j]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((6, 6), "float32"), B: T.Buffer((6, 6), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(6, 6):
        B[i, j] = A[i, j]
