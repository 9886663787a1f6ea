# about: a temporary is stored by its diagonals, each of them one cell
# clause: cells-injective
# expect: refuted
# cells: C_data -> C_data: lambda i, j: [i + j]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((4, 4), "int32")
    for i, j in T.grid(4, 4):
        C[i, j] = A[i, j]
    for i, j in T.grid(4, 4):
        B[i, j] = C[i, j]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((7,), "int32")
    for i, j in T.grid(4, 4):
        C[i + j] = A[i, j]
    for i, j in T.grid(4, 4):
        B[i, j] = C[i + j]
