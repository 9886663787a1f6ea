# about: a sum begins anew in each row, and a load of a cell that data chooses finds the last row's only
# clause: contributions
# expect: refuted
# theta: 0 -> 0: lambda i: []
# theta: 1 -> 1: lambda i, j: [i, j]
# theta: 2 -> 2: lambda x: [x]
# theta: 3 -> 3: lambda: []
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4, 4), "int32"), D: T.Buffer((1,), "int32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((2,), "int32")
    C[0] = 0
    for i, j in T.grid(4, 4):
        C[0] = C[0] + A[i, j]
    for x in range(1):
        C[1] = 7
    B[0] = C[T.max(T.min(D[0], 1), 0)]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4, 4), "int32"), D: T.Buffer((1,), "int32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((2,), "int32")
    for i in range(4):
        C[0] = 0
        for j in range(4):
            C[0] = C[0] + A[i, j]
    for x in range(1):
        C[1] = 7
    B[0] = C[T.max(T.min(D[0], 1), 0)]
