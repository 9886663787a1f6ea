# Panels of the right input are copied into one half of a buffer while the other half is used.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((12, 24), "float32"), B: T.Buffer((24, 8), "float32"), C: T.Buffer((12, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j, k in T.grid(12, 8, 24):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((12, 24), "float32"), B: T.Buffer((24, 8), "float32"), C: T.Buffer((12, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    panel = T.alloc_buffer((2, 4, 8), "float32")
    for i, j in T.grid(12, 8):
        C[i, j] = T.float32(0)
    for ki, j in T.grid(4, 8):
        panel[0, ki, j] = B[ki, j]
    for ko in range(6):
        if ko < 5:
            for ki, j in T.grid(4, 8):
                panel[(ko + 1) % 2, ki, j] = B[ko*4 + 4 + ki, j]
        for i, ki, j in T.grid(12, 4, 8):
            C[i, j] = C[i, j] + A[i, ko*4 + ki] * panel[ko % 2, ki, j]
