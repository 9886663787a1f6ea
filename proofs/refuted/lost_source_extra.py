# about: between a store and its load comes another that computes nothing of the old program
# clause: lost-source
# expect: refuted
# theta: 0 -> 0: lambda i: [i]
# theta: 1 -> none
# theta: 2 -> 1: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((8,), "float32")
    for i in range(8):
        C[i] = A[i]
    for i in range(8):
        B[i] = C[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((8,), "float32")
    for i in range(8):
        C[i] = A[i]
    C[3] = T.float32(5)
    for i in range(8):
        B[i] = C[i]
