# about: the init of a reduction of any length before its loop, where the reduction is not empty
# expect: proved
# theta: 0 -> 0: lambda i: [i, 0]
# theta: 1 -> 1: lambda i, k: [i, k]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer(("n", "m"), "float32"), B: T.Buffer(("n",), "float32")):
    n, m = T.int32(), T.int32()
    T.func_attr({"tirx.noalias": True})
    for i, k in T.grid(n, m):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func(s_tir=True)
def after(A: T.Buffer(("n", "m"), "float32"), B: T.Buffer(("n",), "float32")):
    n, m = T.int32(), T.int32()
    T.func_attr({"tirx.noalias": True})
    for i in range(n):
        if m >= 1:
            B[i] = T.float32(0)
        for k in range(m):
            B[i] = B[i] + A[i, k]
