# Sixteen rows of products in a temporary, each begun under `if k == 0`, of which fourteen are kept.
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
    C_p = T.alloc_buffer((16, 8), "float32")
    for io, j, k, ii in T.grid(4, 8, 12, 4):
        if k == 0:
            C_p[io*4 + ii, j] = T.float32(0)
        C_p[io*4 + ii, j] = C_p[io*4 + ii, j] + T.if_then_else(io*4 + ii < 14, A[io*4 + ii, k], T.float32(0)) * B[k, j]
    for i, j in T.grid(14, 8):
        C[i, j] = C_p[i, j]
