# about: a temporary is inlined after its operand was overwritten
# clause: inlined-sources
# expect: refuted
# theta: 0 -> 1
# theta: 1 -> 2
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((8,), "int32")
    for i in range(8):
        C[i] = A[i] * 2
    for i in range(8):
        A[i] = A[i] + 1
    for i in range(8):
        B[i] = C[i] + 3


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        A[i] = A[i] + 1
    for i in range(8):
        B[i] = A[i] * 2 + 3
