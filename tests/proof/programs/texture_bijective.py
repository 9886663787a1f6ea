# about: a swizzle that keeps every texel apart
# expect: proved
# strictness: ieee
# cells: C_data -> C_data: lambda i, j: [i, (i + j) % 4]
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
        C[i, (i + j) % 4] = A[i, j]
    for i, j in T.grid(8, 4):
        B[i, j] = C[i, (i + j) % 4]
