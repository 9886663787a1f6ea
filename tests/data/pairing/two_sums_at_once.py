# Two sums in one loop, in registers that stand beside each other.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    s = T.alloc_buffer((16,), "float32")
    q = T.alloc_buffer((16,), "float32")
    for i in range(16):
        s[i] = T.float32(0)
        for k in range(8):
            s[i] = s[i] + A[i, k]
    for i in range(16):
        q[i] = T.float32(0)
        for k in range(8):
            q[i] = q[i] + A[i, k] * A[i, k]
    for i in range(16):
        C[i] = q[i] * T.float32(0.125) - (s[i] * T.float32(0.125)) * (s[i] * T.float32(0.125))


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    r = T.alloc_buffer((2,), "float32", scope="local")
    for i in range(16):
        r[0] = T.float32(0)
        r[1] = T.float32(0)
        for k in range(8):
            r[1] = r[1] + A[i, k] * A[i, k]
            r[0] = A[i, k] + r[0]
        C[i] = r[1] * T.float32(0.125) - (r[0] * T.float32(0.125)) * (r[0] * T.float32(0.125))
