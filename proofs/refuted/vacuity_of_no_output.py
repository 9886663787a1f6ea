# about: what both programs compute stays in a temporary that nobody sees
# clause: vacuity
# expect: vacuous
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((8,), "int32")
    for i in range(8):
        C[i] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((8,), "int32")
    for i in range(8):
        C[i] = A[i] + 1
