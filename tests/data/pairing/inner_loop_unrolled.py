# A sum whose loop is taken apart, with the loop over results in between.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, k in T.grid(8, 32):
        with T.sblock("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        C[i] = T.float32(0)
    for ko in range(4):
        for i in range(8):
            for ki in T.unroll(8):
                C[i] = C[i] + A[i, ko*8 + ki]
