# Products of rows over padding that holds 1, which changes no product.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((6, 14), "float32"), B: T.Buffer((6,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(6):
        B[i] = T.float32(1)
        for k in range(14):
            B[i] = B[i] * A[i, k]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((6, 14), "float32"), B: T.Buffer((6,), "float32")):
    T.func_attr({"tirx.noalias": True})
    P = T.alloc_buffer((6, 16), "float32")
    for i, k in T.grid(6, 16):
        P[i, k] = T.if_then_else(k < 14, A[i, k], T.float32(1))
    for i in range(6):
        B[i] = T.float32(1)
        for k in range(16):
            B[i] = B[i] * P[i, k]
