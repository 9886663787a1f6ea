# about: two cells of a temporary, which nobody uses, have no place in the new one
# clause: cells-inside
# expect: unknown
# cells: C_data -> C_data: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((16,), "float32")
    for i in range(14):
        C[i] = A[i]
    for i in range(14):
        B[i] = C[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((14,), "float32")
    for i in range(14):
        C[i] = A[i]
    for i in range(14):
        B[i] = C[i]
