# A window that moves through registers.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((20,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        C[i] = A[i] + A[i + 1] * A[i + 2]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((20,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    w = T.alloc_buffer((3,), "float32", scope="local")
    w[0] = A[0]
    w[1] = A[1]
    for i in range(16):
        w[2] = A[i + 2]
        C[i] = w[0] + w[1] * w[2]
        w[0] = w[1]
        w[1] = w[2]
