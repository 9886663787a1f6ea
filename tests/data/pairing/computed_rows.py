# Rows that a computed index chooses, by way of a transposed temporary.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((100, 8), "float32"), idx: T.Buffer((16,), "int32"), C: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    t = T.alloc_buffer((16,), "int32")
    s = T.alloc_buffer((16, 8), "float32")
    for i in range(16):
        t[i] = T.max(idx[i], 0)
    for i, j in T.grid(16, 8):
        s[i, j] = A[T.min(T.max(t[i], 0), 99), j]
    for i, j in T.grid(16, 8):
        C[i, j] = T.exp(s[i, j])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((100, 8), "float32"), idx: T.Buffer((16,), "int32"), C: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    t = T.alloc_buffer((16,), "int32")
    s = T.alloc_buffer((8, 16), "float32")
    for i in range(16):
        t[i] = T.max(idx[i], 0)
    for i, j in T.grid(16, 8):
        s[j, i] = A[T.min(T.max(t[i], 0), 99), j]
    for i, j in T.grid(16, 8):
        C[i, j] = T.exp(s[j, i])
