# All zeros are stored first; the updates are tiled, in another order, and their operands changed places.
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
    for i, j in T.grid(16, 8):
        C[i, j] = T.float32(0)
    for io, jo, k, ii, ji in T.grid(4, 2, 12, 4, 4):
        C[io*4 + ii, jo*4 + ji] = B[k, jo*4 + ji] * A[io*4 + ii, k] + C[io*4 + ii, jo*4 + ji]
