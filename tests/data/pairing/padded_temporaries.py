# Temporaries with padded rows, which the output cuts off.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((14, 10), "float32"), B: T.Buffer((14, 10), "float32")):
    T.func_attr({"tirx.noalias": True})
    t = T.alloc_buffer((14, 10), "float32")
    s = T.alloc_buffer((14,), "float32")
    for i, j in T.grid(14, 10):
        t[i, j] = T.exp(A[i, j])
    for i in range(14):
        s[i] = T.float32(0)
        for j in range(10):
            s[i] = s[i] + t[i, j]
    for i, j in T.grid(14, 10):
        B[i, j] = t[i, j] / s[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((14, 10), "float32"), B: T.Buffer((14, 10), "float32")):
    T.func_attr({"tirx.noalias": True})
    t = T.alloc_buffer((4, 10, 4), "float32")
    s = T.alloc_buffer((4, 4), "float32")
    for a, j, b in T.grid(4, 10, 4):
        t[a, j, b] = T.if_then_else(a*4 + b < 14, T.exp(A[a*4 + b, j]), T.float32(0))
    for a, b in T.grid(4, 4):
        s[a, b] = T.float32(0)
    for a, j, b in T.grid(4, 10, 4):
        s[a, b] = s[a, b] + t[a, j, b]
    for a, b, j in T.grid(4, 4, 10):
        if a*4 + b < 14:
            B[a*4 + b, j] = t[a, j, b] / s[a, b]
