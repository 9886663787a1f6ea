# about: the new program assumes what a temporary holds
# clause: assumptions
# expect: refuted
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((8,), "int32")
    for i in range(8):
        C[i] = A[i]
    for i in range(8):
        B[i] = C[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((8,), "int32")
    for i in range(8):
        C[i] = A[i]
    for i in range(8):
        T.evaluate(T.assume(C[i] == 1))
    for i in range(8):
        B[i] = C[i]
