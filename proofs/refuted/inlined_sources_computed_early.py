# about: a temporary is introduced, and computed before its operand has its last value
# clause: inlined-sources
# expect: refuted
# theta: 0 -> none
# theta: 1 -> 0
# theta: 2 -> 1
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        A[i] = A[i] + 1
        B[i] = A[i] * 2


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((1,), "int32")
    for i in range(8):
        C[0] = A[i] * 2
        A[i] = A[i] + 1
        B[i] = C[0]
