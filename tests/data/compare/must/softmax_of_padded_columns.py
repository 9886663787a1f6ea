# Rows of 30 in columns of 32: maxima over padding that holds the least number, sums over padding that holds 0, and a result with 0 in its padding.
# expect: proved
# strictness: nnan
# layout: B=lambda i, j: [i, j//16, j%16]
# pad: B=T.float32(0)
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8, 30), "float32"), B: T.Buffer((8, 30), "float32")):
    T.func_attr({"tirx.noalias": True})
    M = T.alloc_buffer((8,), "float32")
    E = T.alloc_buffer((8, 30), "float32")
    S = T.alloc_buffer((8,), "float32")
    for i, k in T.grid(8, 30):
        with T.sblock("M"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                M[vi] = T.min_value("float32")
            M[vi] = T.max(M[vi], A[vi, vk])
    for i, k in T.grid(8, 30):
        E[i, k] = T.exp(A[i, k] - M[i])
    for i, k in T.grid(8, 30):
        with T.sblock("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + E[vi, vk]
    for i, k in T.grid(8, 30):
        B[i, k] = E[i, k] / S[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8, 30), "float32"), B: T.Buffer((8, 2, 16), "float32")):
    T.func_attr({"tirx.noalias": True})
    P = T.alloc_buffer((8, 2, 16), "float32")
    M = T.alloc_buffer((8,), "float32")
    E = T.alloc_buffer((8, 2, 16), "float32")
    S = T.alloc_buffer((8,), "float32")
    for i, c, l in T.grid(8, 2, 16):
        P[i, c, l] = T.if_then_else(c*16 + l < 30, A[i, c*16 + l], T.min_value("float32"))
    for i in range(8):
        M[i] = T.min_value("float32")
        for c, l in T.grid(2, 16):
            M[i] = T.max(M[i], P[i, c, l])
        for c, l in T.grid(2, 16):
            E[i, c, l] = T.if_then_else(c*16 + l < 30, T.exp(A[i, c*16 + l] - M[i]), T.float32(0))
        S[i] = T.float32(0)
        for c, l in T.grid(2, 16):
            S[i] = S[i] + E[i, c, l]
    for i, c, l in T.grid(8, 2, 16):
        if c*16 + l < 30:
            B[i, c, l] = E[i, c, l] / S[i]
        else:
            B[i, c, l] = T.float32(0)
