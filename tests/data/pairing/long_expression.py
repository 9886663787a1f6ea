# A long expression in three stages, with factors and terms in another order.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        C[i] = T.float32(0.5) * A[i] * (T.float32(1) + T.tanh(T.float32(0.79) * (A[i] + T.float32(0.044) * A[i] * A[i] * A[i])))


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    c = T.alloc_buffer((16,), "float32")
    u = T.alloc_buffer((16,), "float32")
    for i in range(16):
        c[i] = A[i] * T.float32(0.044) * A[i] * A[i]
    for i in range(16):
        u[i] = T.tanh((c[i] + A[i]) * T.float32(0.79)) + T.float32(1)
    for i in range(16):
        C[i] = u[i] * (A[i] * T.float32(0.5))
