# What `tvm.script.tir` wrote against what `tvm.script.tirx` writes: T.block, T.alloc_buffer, T.reads against their new names.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func
def before(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    S = T.alloc_buffer((16, 8), "float32")
    for i, j in T.grid(16, 8):
        with T.block("S"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(S[vi, vj])
            S[vi, vj] = A[vi, vj]
    for i, k in T.grid(16, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(S[vi, vk])
            T.writes(B[vi])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + S[vi, vk]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    S = T.sblock_alloc_buffer((16, 8))
    for i, j in T.grid(16, 8):
        with T.sblock("S"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(S[vi, vj])
            S[vi, vj] = A[vi, vj]
    for ko, i, ki in T.grid(2, 16, 4):
        with T.sblock("B"):
            vi = T.axis.spatial(16, i)
            vk = T.axis.reduce(8, ko*4 + ki)
            T.reads(S[vi, vk])
            T.writes(B[vi])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + S[vi, vk]
