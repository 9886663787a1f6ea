# about: a sum is done in two halves, and only one of them is read
# clause: contributions
# expect: refuted
# theta: 0 -> 0: lambda: []
# theta: 1 -> 0: lambda: []
# theta: 2 -> 1: lambda k: [2*k + 1]
# theta: 3 -> 1: lambda k: [2*k]
# theta: 4 -> 2: lambda: []
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "int32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((1,), "int32")
    C[0] = 0
    for k in range(8):
        C[0] = C[0] + A[k]
    B[0] = C[0]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "int32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((1,), "int32")
    D = T.sblock_alloc_buffer((1,), "int32")
    C[0] = 0
    D[0] = 0
    for k in range(4):
        C[0] = C[0] + A[2*k + 1]
    for k in range(4):
        D[0] = D[0] + A[2*k]
    B[0] = C[0]
