# A product of two computed factors that are packed, its loop taken apart and turned round.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8, 16), "float32"), B: T.Buffer((16, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    P = T.alloc_buffer((8, 16), "float32")
    Q = T.alloc_buffer((16, 8), "float32")
    for i, k in T.grid(8, 16):
        P[i, k] = T.exp(A[i, k])
    for k, j in T.grid(16, 8):
        Q[k, j] = T.sqrt(B[k, j])
    for i, j, k in T.grid(8, 8, 16):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + P[vi, vk] * Q[vk, vj]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8, 16), "float32"), B: T.Buffer((16, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    P = T.alloc_buffer((4, 8, 4), "float32")
    Q = T.alloc_buffer((8, 16), "float32")
    for ko, i, ki in T.grid(4, 8, 4):
        P[ko, i, ki] = T.exp(A[i, ko*4 + ki])
    for k, j in T.grid(16, 8):
        Q[j, k] = T.sqrt(B[k, j])
    for i, j in T.grid(8, 8):
        C[i, j] = T.float32(0)
    for ki, ko, i, j in T.grid(4, 4, 8, 8):
        C[i, j] = C[i, j] + P[ko, i, ki] * Q[j, ko*4 + ki]
