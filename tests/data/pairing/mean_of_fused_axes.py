# A mean over three axes in one loop.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(X: T.Buffer((2, 8, 4, 4), "float32"), G: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), Y: T.Buffer((2, 8, 4, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    mean = T.alloc_buffer((8,), "float32")
    for c in range(8):
        mean[c] = T.float32(0)
    for n, c, h, w in T.grid(2, 8, 4, 4):
        mean[c] = mean[c] + X[n, c, h, w]
    for n, c, h, w in T.grid(2, 8, 4, 4):
        Y[n, c, h, w] = (X[n, c, h, w] - mean[c] * T.float32(0.03125)) * G[c] + B[c]


@T.prim_func(s_tir=True)
def after(X: T.Buffer((2, 8, 4, 4), "float32"), G: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), Y: T.Buffer((2, 8, 4, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    acc = T.alloc_buffer((1,), "float32", scope="local")
    for c in range(8):
        acc[0] = T.float32(0)
        for f in range(32):
            acc[0] = acc[0] + X[f // 16, c, f // 4 % 4, f % 4]
        for n, hw in T.grid(2, 16):
            Y[n, c, hw // 4, hw % 4] = G[c] * (X[n, c, hw // 4, hw % 4] - acc[0] * T.float32(0.03125)) + B[c]
