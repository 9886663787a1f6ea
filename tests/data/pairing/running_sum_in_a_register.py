# A running sum that a register carries, its loop taken apart.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    B[0] = A[0]
    for i in range(15):
        B[i + 1] = B[i] + A[i + 1]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    c = T.alloc_buffer((1,), "float32", scope="local")
    c[0] = A[0]
    B[0] = c[0]
    for io in range(5):
        for ii in T.unroll(3):
            c[0] = c[0] + A[io*3 + ii + 1]
            B[io*3 + ii + 1] = c[0]
