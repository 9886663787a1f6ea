# about: a loop is cut in the middle, around a value that depends on everything before it
# expect: proved
# strictness: ieee
# theta: 0 -> 0: lambda i: [i]
# theta: 1 -> 0: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer(("n",), "float32"), B: T.Buffer((1,), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    for i in range(n):
        B[0] = T.exp(B[0] * T.float32(3)) + A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer(("n",), "float32"), B: T.Buffer((1,), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    for i in range(n // 2):
        B[0] = T.exp(B[0] * T.float32(3)) + A[i]
    for i in T.serial(n // 2, n):
        B[0] = T.exp(B[0] * T.float32(3)) + A[i]
