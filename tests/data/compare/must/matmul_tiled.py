# Tiles of 16 by 16 over 100 by 50, the reduction split by 7, guards where tiles reach too far, init by tile.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((100, 70), "float32"), B: T.Buffer((70, 50), "float32"), C: T.Buffer((100, 50), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j, k in T.grid(100, 50, 70):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((100, 70), "float32"), B: T.Buffer((70, 50), "float32"), C: T.Buffer((100, 50), "float32")):
    T.func_attr({"tirx.noalias": True})
    for io, jo in T.grid(7, 4):
        for ii, ji in T.grid(16, 16):
            if io*16 + ii < 100 and jo*16 + ji < 50:
                C[io*16 + ii, jo*16 + ji] = T.float32(0)
        for ko, ii, ki, ji in T.grid(10, 16, 7, 16):
            if io*16 + ii < 100 and jo*16 + ji < 50:
                C[io*16 + ii, jo*16 + ji] = C[io*16 + ii, jo*16 + ji] + A[io*16 + ii, ko*7 + ki] * B[ko*7 + ki, jo*16 + ji]
