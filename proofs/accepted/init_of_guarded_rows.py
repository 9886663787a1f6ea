# about: the init of a guarded reduction in loops of its own, under the same guard
# expect: proved
# theta: 0 -> 0: lambda i: [i, 0]
# theta: 1 -> 1: lambda k, i: [i, k]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, k in T.grid(8, 8):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where(i < 5)
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        if i < 5:
            B[i] = T.float32(0)
    for k, i in T.grid(8, 8):
        if i < 5:
            B[i] = B[i] + A[i, k]
