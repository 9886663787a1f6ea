# about: the later of two scattered stores to one cell comes first
# clause: order
# expect: refuted
# theta: 0 -> 0: lambda i: [7 - i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(D: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[T.max(T.min(D[i], 7), 0)] = i


@T.prim_func(s_tir=True)
def after(D: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[T.max(T.min(D[7 - i], 7), 0)] = 7 - i
