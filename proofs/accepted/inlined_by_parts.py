# about: a temporary that three statements wrote, the last over the first, is written out: each part of the loop as what it found
# expect: proved
# strictness: ieee
# theta: 0 -> 4: lambda i: [i]
# theta: 1 -> 3: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((16,), "float32")
    for i in range(16):
        C[15 - i] = T.exp(A[15 - i])
    for io, ii in T.grid(2, 4):
        C[io*4 + ii] = A[io*4 + ii] * T.float32(2)
    C[3] = T.float32(1) - A[4]
    for i in range(16):
        A[i] = A[i] + T.float32(1)
    for i in range(16):
        B[i] = C[i] * C[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        B[i] = T.if_then_else(i == 3, (T.float32(1) - A[4]) * (T.float32(1) - A[4]), T.if_then_else(i < 8, A[i] * T.float32(2) * (A[i] * T.float32(2)), T.exp(A[i]) * T.exp(A[i])))
    for i in range(16):
        A[i] = A[i] + T.float32(1)
