# about: a texture formula that puts two elements into one texel
# expect: refuted
# cells: C_data -> C_data: lambda i, j: [(i + j) % 8, (i // 2 + j) % 4]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((8, 4))
    for i, j in T.grid(8, 4):
        C[i, j] = A[i, j]
    for i, j in T.grid(8, 4):
        B[i, j] = C[i, j]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((8, 4))
    for i, j in T.grid(8, 4):
        C[(i + j) % 8, (i // 2 + j) % 4] = A[i, j]
    for i, j in T.grid(8, 4):
        B[i, j] = C[(i + j) % 8, (i // 2 + j) % 4]
