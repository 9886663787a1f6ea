# The sum is kept in a local cell and copied out at the end.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 12), "float32"), B: T.Buffer((12, 8), "float32"), C: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j, k in T.grid(16, 8, 12):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 12), "float32"), B: T.Buffer((12, 8), "float32"), C: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    acc = T.alloc_buffer((1,), "float32", scope="local")
    for i, j in T.grid(16, 8):
        acc[0] = T.float32(0)
        for k in range(12):
            acc[0] = acc[0] + A[i, k] * B[k, j]
        C[i, j] = acc[0]
