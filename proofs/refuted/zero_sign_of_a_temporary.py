# about: the sign of a zero in a temporary changes before it is divided by; the old program has no temporary
# clause: zero-sign
# expect: refuted
# strictness: nsz
# theta: 0 -> none
# theta: 1 -> none
# theta: 2 -> 0: lambda: []
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((1,), "float32"), C: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    C[0] = T.float32(1) / T.Select(A[0] > T.float32(2), T.float32(2), A[0])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((1,), "float32"), C: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    D = T.sblock_alloc_buffer((1,), "float32")
    D[0] = T.Select(A[0] > T.float32(2), T.float32(2), A[0])
    D[0] = D[0] + T.float32(0)
    C[0] = T.float32(1) / D[0]
