# about: a sum of what was stored wraps, and is compared as an integer once values stand for loads
# clause: inlined-parts
# expect: refuted
# theta: 0 -> 1: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    t = T.alloc_buffer((8,), "int32")
    for i in range(8):
        t[i] = i * 268435456
    for i in range(8):
        if t[i] + t[i] >= 0:
            B[i] = 1


@T.prim_func(s_tir=True)
def after(B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[i] = 1
