# Two outputs, one of which needs the other, by way of a register.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 8), "float32"), M: T.Buffer((16,), "float32"), C: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        M[i] = T.float32(0)
        for j in range(8):
            M[i] = M[i] + A[i, j]
    for i, j in T.grid(16, 8):
        C[i, j] = A[i, j] - M[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 8), "float32"), M: T.Buffer((16,), "float32"), C: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    m = T.alloc_buffer((1,), "float32", scope="local")
    for i in range(16):
        m[0] = T.float32(0)
        for j in range(8):
            m[0] = m[0] + A[i, j]
        for j in range(8):
            C[i, j] = A[i, j] - m[0]
        M[i] = m[0]
