# about: a product, a bias and a maximum in three stages and in one: what the middle one stored is written out
# expect: proved
# strictness: ieee
# theta: 0 -> 0: lambda i, j: [i, j, 0]
# theta: 1 -> 1: lambda i, j, k: [i, j, k]
# theta: 2 -> 3
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 12), "float32"), B: T.Buffer((12, 8), "float32"), C: T.Buffer((16, 8), "float32"), b: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    S = T.alloc_buffer((16, 8), "float32")
    D = T.alloc_buffer((16, 8), "float32")
    for i, j, k in T.grid(16, 8, 12):
        with T.sblock("S"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                S[vi, vj] = T.float32(0)
            S[vi, vj] = S[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(16, 8):
        D[i, j] = S[i, j] + b[j]
    for i, j in T.grid(16, 8):
        C[i, j] = T.max(D[i, j], T.float32(0))


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 12), "float32"), B: T.Buffer((12, 8), "float32"), C: T.Buffer((16, 8), "float32"), b: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    acc = T.alloc_buffer((1,), "float32", scope="local")
    for i, j in T.grid(16, 8):
        acc[0] = T.float32(0)
        for k in range(12):
            acc[0] = acc[0] + A[i, k] * B[k, j]
        C[i, j] = T.max(acc[0] + b[j], T.float32(0))
