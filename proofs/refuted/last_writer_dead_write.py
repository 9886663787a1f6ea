# about: padding that was 0 on entry is overwritten before the sum that relies on it
# clause: last-writer
# expect: refuted
# theta: 0 -> 0: lambda i, j: [i, j] where 4*i + j < 14
# theta: 1 -> 1: lambda: []
# theta: 2 -> 2: lambda i, j: [i, j] where 4*i + j < 14
# theta: 3 -> 3: lambda p, q: [p, q]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4, 4), "int32"), D: T.Buffer((1,), "int32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for p, q in T.grid(4, 4):
        T.evaluate(T.assume(not (p == 3 and q >= 2) or A[p, q] == 0))
    for i, j in T.grid(4, 4):
        if 4 * i + j < 14:
            A[i, j] = A[i, j] + D[0]
    B[0] = 0
    for i, j in T.grid(4, 4):
        if 4 * i + j < 14:
            B[0] = B[0] + A[i, j]
    for p, q in T.grid(4, 4):
        if p == 3 and q >= 2:
            A[p, q] = T.undef(dtype="int32")


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4, 4), "int32"), D: T.Buffer((1,), "int32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for p, q in T.grid(4, 4):
        T.evaluate(T.assume(not (p == 3 and q >= 2) or A[p, q] == 0))
    for i, j in T.grid(4, 4):
        A[i, j] = A[i, j] + D[0]
    B[0] = 0
    for i, j in T.grid(4, 4):
        B[0] = B[0] + A[i, j]
    for p, q in T.grid(4, 4):
        if p == 3 and q >= 2:
            A[p, q] = T.undef(dtype="int32")
