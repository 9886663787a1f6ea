# about: an undefined value that was stored once, and loaded twice, comes out of two places
# clause: inlined-undefined
# expect: refuted
# theta: 0 -> 1: lambda: []
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((1,), "int32")
    C[0] = T.undef(dtype="int32")
    B[0] = C[0] - C[0]


@T.prim_func(s_tir=True)
def after(B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    B[0] = T.undef(dtype="int32") - T.undef(dtype="int32")
