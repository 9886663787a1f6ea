# about: a temporary of any size, computed in tiles of four and over the end, is written out
# expect: proved
# strictness: ieee
# theta: 0 -> 1: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((n // 4 * 4 + 4,), "float32")
    for io, ii in T.grid(n // 4 + 1, 4):
        C[io*4 + ii] = T.if_then_else(io*4 + ii < n, T.exp(A[io*4 + ii]), T.float32(0))
    for i in range(n):
        B[i] = C[i] * C[n - 1 - i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    for i in range(n):
        B[i] = T.exp(A[i]) * T.exp(A[n - 1 - i])
