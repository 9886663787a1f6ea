# The other way: a choice at each load becomes a padded copy of the input.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((14,), "float32"), W: T.Buffer((3,), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, k in T.grid(14, 3):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + T.if_then_else(1 <= vi + vk and vi + vk < 15, A[vi + vk - 1], T.float32(0)) * W[vk]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((14,), "float32"), W: T.Buffer((3,), "float32"), B: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    P = T.alloc_buffer((16,), "float32")
    for i in range(16):
        P[i] = T.if_then_else(1 <= i and i < 15, A[i - 1], T.float32(0))
    for i, k in T.grid(14, 3):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + P[vi + vk] * W[vk]
