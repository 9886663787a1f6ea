# A sum over a temporary of a temporary, all in other layouts and orders.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8, 16), "float32"), C: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    P = T.alloc_buffer((8, 16), "float32")
    Q = T.alloc_buffer((8, 16), "float32")
    for i, k in T.grid(8, 16):
        P[i, k] = T.exp(A[i, k])
    for i, k in T.grid(8, 16):
        Q[i, k] = P[i, k] * P[i, k]
    for i, k in T.grid(8, 16):
        with T.sblock("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + Q[vi, vk]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8, 16), "float32"), C: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    P = T.alloc_buffer((16, 8), "float32")
    Q = T.alloc_buffer((4, 4, 8), "float32")
    for k, i in T.grid(16, 8):
        P[k, i] = T.exp(A[i, k])
    for k, i in T.grid(16, 8):
        Q[k % 4, k // 4, i] = P[k, i] * P[k, i]
    for i in range(8):
        C[i] = T.float32(0)
    for a, b, i in T.grid(4, 4, 8):
        C[i] = C[i] + Q[a, b, i]
