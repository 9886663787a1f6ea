# about: the sign of one zero is chosen twice, by way of a second name for it
# clause: inlined-fast-math
# expect: unknown
# strictness: nsz
# theta: 0 -> 0: lambda: []
# theta: 1 -> 1: lambda: []
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((1,), "float32"), B: T.Buffer((1,), "int32"), C: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    x = A[0] + T.float32(0)
    y = x
    B[0] = T.Select(T.float32(1) / y > T.float32(0), 1, 0)
    C[0] = T.Select(T.float32(1) / y > T.float32(0), 1, 0)


@T.prim_func(s_tir=True)
def after(A: T.Buffer((1,), "float32"), B: T.Buffer((1,), "int32"), C: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    B[0] = T.Select(T.float32(1) / (A[0] + T.float32(0)) > T.float32(0), 1, 0)
    C[0] = T.Select(T.float32(1) / A[0] > T.float32(0), 1, 0)
