# Sixteen rows are computed in temporaries, of which fourteen are copied out.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((14, 12), "float32"), B: T.Buffer((12, 8), "float32"), C: T.Buffer((14, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j, k in T.grid(14, 8, 12):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((14, 12), "float32"), B: T.Buffer((12, 8), "float32"), C: T.Buffer((14, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    A_p = T.alloc_buffer((16, 12), "float32")
    C_p = T.alloc_buffer((16, 8), "float32")
    for i, k in T.grid(16, 12):
        A_p[i, k] = T.if_then_else(i < 14, A[i, k], T.float32(0))
    for i, j in T.grid(16, 8):
        C_p[i, j] = T.float32(0)
    for i, j, k in T.grid(16, 8, 12):
        C_p[i, j] = C_p[i, j] + A_p[i, k] * B[k, j]
    for i, j in T.grid(14, 8):
        C[i, j] = C_p[i, j]
