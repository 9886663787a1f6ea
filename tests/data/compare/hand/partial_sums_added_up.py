# Four partial sums for each row, added up at the end.
# expect: proved
# strictness: reassoc
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 32), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, k in T.grid(16, 32):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 32), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    P = T.alloc_buffer((16, 4), "float32")
    for i, l in T.grid(16, 4):
        P[i, l] = T.float32(0)
        for k in range(8):
            P[i, l] = P[i, l] + A[i, k*4 + l]
    for i in range(16):
        B[i] = T.float32(0)
        for l in range(4):
            B[i] = B[i] + P[i, l]
