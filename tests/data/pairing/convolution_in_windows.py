# A convolution and its pooling window by window.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(X: T.Buffer((10, 10), "float32"), W: T.Buffer((3, 3), "float32"), Y: T.Buffer((4, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    P = T.alloc_buffer((10, 10), "float32")
    H = T.alloc_buffer((8, 8), "float32")
    for i, j in T.grid(10, 10):
        P[i, j] = T.if_then_else(1 <= i and i < 9 and 1 <= j and j < 9, X[i, j], T.float32(0))
    for i, j, r, s in T.grid(8, 8, 3, 3):
        with T.sblock("H"):
            vi, vj, vr, vs = T.axis.remap("SSRR", [i, j, r, s])
            with T.init():
                H[vi, vj] = T.float32(0)
            H[vi, vj] = H[vi, vj] + P[vi + vr, vj + vs] * W[vr, vs]
    for i, j, a, b in T.grid(4, 4, 2, 2):
        with T.sblock("Y"):
            vi, vj, va, vb = T.axis.remap("SSRR", [i, j, a, b])
            with T.init():
                Y[vi, vj] = T.min_value("float32")
            Y[vi, vj] = T.max(Y[vi, vj], H[vi*2 + va, vj*2 + vb])


@T.prim_func(s_tir=True)
def after(X: T.Buffer((10, 10), "float32"), W: T.Buffer((3, 3), "float32"), Y: T.Buffer((4, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    h = T.alloc_buffer((2, 2), "float32")
    for i, j in T.grid(4, 4):
        for a, b in T.grid(2, 2):
            h[a, b] = T.float32(0)
            for r, s in T.grid(3, 3):
                h[a, b] = h[a, b] + T.if_then_else(1 <= i*2 + a + r and i*2 + a + r < 9 and 1 <= j*2 + b + s and j*2 + b + s < 9, X[i*2 + a + r, j*2 + b + s], T.float32(0)) * W[r, s]
        Y[i, j] = T.min_value("float32")
        for a, b in T.grid(2, 2):
            Y[i, j] = T.max(Y[i, j], h[a, b])
