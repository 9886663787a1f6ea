# A sum over two axes in one loop, outside the loop over its results.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 6, 5), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, k, l in T.grid(16, 6, 5):
        with T.sblock("C"):
            vi, vk, vl = T.axis.remap("SRR", [i, k, l])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk, vl]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 6, 5), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        C[i] = T.float32(0)
    for f in range(30):
        for i in range(16):
            C[i] = C[i] + A[i, f // 5, f % 5]
