# about: two elements of a temporary share one cell where a scalar parameter, which its extent is made of, is negative
# clause: cells-injective
# expect: refuted
# where: n >= -7 and n <= 8
# cells: C_data -> C_data: lambda i: [select(n < 0, i//2, i)]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((n + 8,), "float32")
    for i in range(n + 8):
        C[i] = A[i]
    for i in range(n + 8):
        B[i] = C[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((n + 8,), "float32")
    for i in range(n + 8):
        C[T.Select(n < 0, i // 2, i)] = A[i]
    for i in range(n + 8):
        B[i] = C[T.Select(n < 0, i // 2, i)]
