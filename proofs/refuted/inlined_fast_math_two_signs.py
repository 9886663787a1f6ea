# about: the sign of one zero is chosen twice, by two statements that loaded it
# clause: inlined-fast-math
# expect: unknown
# strictness: nsz
# theta: 0 -> 1: lambda: []
# theta: 1 -> 2: lambda: []
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((1,), "float32"), B: T.Buffer((1,), "int32"), C: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    D = T.sblock_alloc_buffer((1,), "float32")
    D[0] = A[0] + T.float32(0)
    B[0] = T.Select(T.float32(1) / D[0] > T.float32(0), 1, 0)
    C[0] = T.Select(T.float32(1) / D[0] > T.float32(0), 1, 0)


@T.prim_func(s_tir=True)
def after(A: T.Buffer((1,), "float32"), B: T.Buffer((1,), "int32"), C: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    B[0] = T.Select(T.float32(1) / (A[0] + T.float32(0)) > T.float32(0), 1, 0)
    C[0] = T.Select(T.float32(1) / A[0] > T.float32(0), 1, 0)
