# about: the sign of one zero, which has a name, is chosen anew in each iteration that uses it
# clause: inlined-fast-math
# expect: unknown
# strictness: nsz
# theta: 0 -> 0: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((1,), "float32"), B: T.Buffer((2,), "int32")):
    T.func_attr({"tirx.noalias": True})
    x = A[0] + T.float32(0)
    for i in range(2):
        B[i] = T.Select(T.float32(1) / x > T.float32(0), 1, 0)


@T.prim_func(s_tir=True)
def after(A: T.Buffer((1,), "float32"), B: T.Buffer((2,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(2):
        B[i] = T.if_then_else(i == 0, T.Select(T.float32(1) / (A[0] + T.float32(0)) > T.float32(0), 1, 0), T.Select(T.float32(1) / A[0] > T.float32(0), 1, 0))
