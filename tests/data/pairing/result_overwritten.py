# An output that is written twice against a temporary.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        C[i] = T.exp(A[i])
    for i in range(16):
        C[i] = C[i] * C[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    t = T.alloc_buffer((16,), "float32")
    for i in range(16):
        t[i] = T.exp(A[i])
    for i in range(16):
        C[15 - i] = t[15 - i] * t[15 - i]
