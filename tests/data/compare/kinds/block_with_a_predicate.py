# A reduction split by 4 with 14 terms: a block with T.where against a guard in plain loops, with a separate init.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((6, 14), "float32"), B: T.Buffer((6,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(6):
        B[i] = T.float32(0)
    for i, ko, ki in T.grid(6, 4, 4):
        with T.sblock("update"):
            vi = T.axis.spatial(6, i)
            vk = T.axis.reduce(14, ko*4 + ki)
            T.where(ko*4 + ki < 14)
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((6, 14), "float32"), B: T.Buffer((6,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(6):
        B[i] = T.float32(0)
        for ko, ki in T.grid(2, 7):
            B[i] = B[i] + A[i, ko*7 + ki]
