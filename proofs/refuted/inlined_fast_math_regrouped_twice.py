# about: a sum that is computed once, and compared with itself, is computed twice, in two orders
# clause: inlined-fast-math
# expect: unknown
# strictness: reassoc
# theta: 0 -> 0: lambda: []
# theta: 1 -> 1: lambda i: [3 - i]
# theta: 2 -> 0: lambda: []
# theta: 3 -> 1: lambda i: [i]
# theta: 4 -> 2: lambda: []
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4,), "float32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((1,), "float32")
    C[0] = T.float32(0)
    for i in range(4):
        C[0] = C[0] + A[i]
    B[0] = T.Select(C[0] == C[0], 1, 0)


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4,), "float32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((1,), "float32")
    D = T.sblock_alloc_buffer((1,), "float32")
    C[0] = T.float32(0)
    for i in range(4):
        C[0] = C[0] + A[3 - i]
    D[0] = T.float32(0)
    for i in range(4):
        D[0] = D[0] + A[i]
    B[0] = T.Select(C[0] == D[0], 1, 0)
