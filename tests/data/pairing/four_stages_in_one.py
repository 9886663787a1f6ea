# Four stages against one expression, in which two of them stand several times.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    a = T.alloc_buffer((16,), "float32")
    b = T.alloc_buffer((16,), "float32")
    c = T.alloc_buffer((16,), "float32")
    for i in range(16):
        a[i] = A[i] + T.float32(1)
    for i in range(16):
        b[i] = T.exp(a[i])
    for i in range(16):
        c[i] = T.sqrt(b[i]) * a[i]
    for i in range(16):
        C[i] = c[i] + b[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        C[i] = T.exp(A[i] + T.float32(1)) + T.sqrt(T.exp(A[i] + T.float32(1))) * (A[i] + T.float32(1))
