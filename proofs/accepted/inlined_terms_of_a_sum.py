# about: a sum of three terms, update by update and in one expression
# expect: proved
# strictness: ieee
# theta: 0 -> 1: lambda i: [i, 2]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), W: T.Buffer((3,), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, k in T.grid(14, 3):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi + vk] * W[vk]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), W: T.Buffer((3,), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        B[i] = T.float32(0) + A[i] * W[0] + A[i + 1] * W[1] + A[i + 2] * W[2]
