# about: two elements of a temporary share one cell
# clause: cells-injective
# expect: refuted
# cells: C_data -> C_data: lambda i: [i//2]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((16,), "float32")
    for i in range(16):
        C[i] = A[i]
    for i in range(16):
        B[i] = C[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((8,), "float32")
    for i in range(16):
        C[i // 2] = A[i]
    for i in range(16):
        B[i] = C[i // 2]
