# about: a condition that padding decides which may hold anything, in iterations that the old program does not have
# clause: faults
# expect: unknown
# theta: 0 -> 0: lambda i: [i]
# theta: 1 -> none
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "int32"), B: T.Buffer((14,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        T.assume(i < 14 or A[i] == T.undef())
    for i in range(14):
        B[i] = T.if_then_else(A[i] > 0, 1, 2)


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "int32"), B: T.Buffer((14,), "int32")):
    T.func_attr({"tirx.noalias": True})
    U = T.alloc_buffer((16,), "int32")
    for i in range(16):
        T.assume(i < 14 or A[i] == T.undef())
    for i in range(14):
        B[i] = T.if_then_else(A[i] > 0, 1, 2)
    for i in range(16):
        U[i] = T.if_then_else(A[15 - i] > 0, 1, 2)
