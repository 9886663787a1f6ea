# about: a copy is left out, and what was copied changes before it is looked at
# clause: inlined-sources
# expect: refuted
# theta: 0 -> 1: lambda i: [i]
# theta: 1 -> 2: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((16,), "float32")
    for i in range(16):
        C[i] = A[i]
    for i in range(16):
        A[i] = A[i] + T.float32(1)
    for i in range(16):
        B[i] = C[i] + C[15 - i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        A[i] = A[i] + T.float32(1)
    for i in range(16):
        B[i] = A[i] + A[15 - i]
