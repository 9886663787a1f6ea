# about: one undefined value read twice is equal to itself, two undefined values are not
# clause: values
# expect: refuted
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(B: T.Buffer((4,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((4,), "int32")
    for i in range(4):
        C[i] = T.undef(dtype="int32")
    for i in range(4):
        B[i] = C[i] - C[i]


@T.prim_func(s_tir=True)
def after(B: T.Buffer((4,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((4,), "int32")
    for i in range(4):
        C[i] = T.undef(dtype="int32")
    for i in range(4):
        B[i] = T.undef(dtype="int32") - T.undef(dtype="int32")
