# about: two temporaries are packed into one memory and overlap by two cells
# clause: cells-apart
# expect: refuted
# cells: C_data -> E_data: lambda i: [i]
# cells: D_data -> E_data: lambda i: [i + 6]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((8,), "float32")
    D = T.sblock_alloc_buffer((8,), "float32")
    for i in range(8):
        C[i] = A[i]
    for i in range(8):
        D[i] = A[i] + T.float32(1)
    for i in range(8):
        B[i] = C[i] + D[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    E = T.sblock_alloc_buffer((14,), "float32")
    for i in range(8):
        E[i] = A[i]
    for i in range(8):
        E[i + 6] = A[i] + T.float32(1)
    for i in range(8):
        B[i] = E[i] + E[i + 6]
