# about: an overcomputed lane, whose result nobody uses, reads past the end of its input
# clause: faults
# expect: refuted
# theta: 0 -> 0: lambda i: [i] where i < 14
# theta: 1 -> 1: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((16,), "float32")
    for i in range(16):
        if i < 14:
            C[i] = A[i]
    for i in range(14):
        B[i] = C[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((16,), "float32")
    for i in range(16):
        C[i] = A[i]
    for i in range(14):
        B[i] = C[i]
