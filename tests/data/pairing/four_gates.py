# Four gates in one array against four arrays.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(X: T.Buffer((16,), "float32"), W: T.Buffer((4, 16), "float32"), C: T.Buffer((16,), "float32"), H: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    g = T.alloc_buffer((4, 16), "float32")
    for k, i in T.grid(4, 16):
        g[k, i] = T.tanh(X[i] * W[k, i])
    for i in range(16):
        C[i] = g[0, i] * g[1, i] + g[2, i]
    for i in range(16):
        H[i] = g[3, i] * T.tanh(C[i])


@T.prim_func(s_tir=True)
def after(X: T.Buffer((16,), "float32"), W: T.Buffer((4, 16), "float32"), C: T.Buffer((16,), "float32"), H: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    g0 = T.alloc_buffer((16,), "float32")
    g1 = T.alloc_buffer((16,), "float32")
    g2 = T.alloc_buffer((16,), "float32")
    g3 = T.alloc_buffer((16,), "float32")
    for i in range(16):
        g3[i] = T.tanh(X[i] * W[3, i])
        g2[i] = T.tanh(X[i] * W[2, i])
        g1[i] = T.tanh(X[i] * W[1, i])
        g0[i] = T.tanh(X[i] * W[0, i])
    for i in range(16):
        C[i] = g2[i] + g1[i] * g0[i]
        H[i] = T.tanh(C[i]) * g3[i]
