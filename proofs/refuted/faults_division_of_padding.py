# about: the smallest integer divided by -1 in a lane of padding traps
# clause: faults
# expect: refuted
# theta: 0 -> 0: lambda i: [i] where i < 14
# theta: 1 -> 1: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "int32"), D: T.Buffer((16,), "int32"), B: T.Buffer((14,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((16,), "int32")
    for p in range(16):
        T.evaluate(T.assume(p < 14 or A[p] == -2147483648))
    for p in range(16):
        T.evaluate(T.assume(p < 14 or D[p] == -1))
    for i in range(14):
        C[i] = A[i] // D[i]
    for i in range(14):
        B[i] = C[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "int32"), D: T.Buffer((16,), "int32"), B: T.Buffer((14,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((16,), "int32")
    for p in range(16):
        T.evaluate(T.assume(p < 14 or A[p] == -2147483648))
    for p in range(16):
        T.evaluate(T.assume(p < 14 or D[p] == -1))
    for i in range(16):
        C[i] = A[i] // D[i]
    for i in range(14):
        B[i] = C[i]
