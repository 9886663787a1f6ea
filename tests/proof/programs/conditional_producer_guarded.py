# about: the same, the padding filled only where an element is positive
# expect: refuted
# theta: 0 -> 0: lambda i: [i]
# theta: 1 -> 1: lambda p, q: [p, q]
# theta: 2 -> 2: lambda: []
# theta: 3 -> 3: lambda i, j: [i, j] where 4*i + j < 14
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((14,), "float32"), B: T.Buffer((4, 4), "float32"), S: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        if A[i] > T.float32(0):
            B[i // 4, i % 4] = A[i]
    for p, q in T.grid(4, 4):
        if p == 3 and q >= 2:
            if A[0] > T.float32(0):
                B[p, q] = T.float32(0)
    S[0] = T.float32(0)
    for i, j in T.grid(4, 4):
        if 4 * i + j < 14:
            S[0] = S[0] + B[i, j]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((14,), "float32"), B: T.Buffer((4, 4), "float32"), S: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        if A[i] > T.float32(0):
            B[i // 4, i % 4] = A[i]
    for p, q in T.grid(4, 4):
        if p == 3 and q >= 2:
            if A[0] > T.float32(0):
                B[p, q] = T.float32(0)
    S[0] = T.float32(0)
    for i, j in T.grid(4, 4):
        S[0] = S[0] + B[i, j]
