# about: the init of a reduction over two axes, the outer one around the results, in a loop of its own
# expect: proved
# theta: 0 -> 0: lambda i: [0, i, 0]
# theta: 1 -> 1: lambda ko, i, ki: [ko, i, ki]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for ko, i, ki in T.grid(4, 8, 2):
        with T.sblock("sum"):
            vi = T.axis.spatial(8, i)
            vk = T.axis.reduce(8, ko * 2 + ki)
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[i] = T.float32(0)
    for ko, i, ki in T.grid(4, 8, 2):
        B[i] = B[i] + A[i, ko * 2 + ki]
