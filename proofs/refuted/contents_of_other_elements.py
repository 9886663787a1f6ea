# about: a table is also looked up by elements of an input that the old program does not look at
# clause: contents
# expect: refuted
# theta: 0 -> none
# theta: 1 -> 0
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((10,), "float32"), I: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(6):
        B[i] = A[I[i]]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((10,), "float32"), I: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((8,), "float32")
    for i in range(8):
        C[i] = A[I[i]]
    for i in range(6):
        B[i] = A[I[i]]
