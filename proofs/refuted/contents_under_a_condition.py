# about: a table is looked up always, which the old program does only where data says so
# clause: contents
# expect: refuted
# theta: 0 -> none
# theta: 1 -> 0
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((10,), "float32"), I: T.Buffer((8,), "int32"), D: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[i] = T.if_then_else(D[i] > 0, A[I[i]], T.float32(0))


@T.prim_func(s_tir=True)
def after(A: T.Buffer((10,), "float32"), I: T.Buffer((8,), "int32"), D: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((8,), "float32")
    for i in range(8):
        C[i] = A[I[i]]
    for i in range(8):
        B[i] = T.if_then_else(D[i] > 0, A[I[i]], T.float32(0))
