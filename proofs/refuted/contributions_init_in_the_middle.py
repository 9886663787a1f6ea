# about: a rotated reduction starts in the middle of its loop and forgets what it had, the other adds all up
# clause: contributions
# expect: refuted
# theta: 0 -> 0: lambda i: [i, 4]
# theta: 1 -> 1: lambda i, k: [i, k]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, k in T.grid(8, 8):
        with T.sblock("sum"):
            vi = T.axis.spatial(8, i)
            vk = T.axis.reduce(8, (k + 4) % 8)
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[i] = T.float32(0)
        for k in range(8):
            B[i] = B[i] + A[i, (k + 4) % 8]
