# Each program stores what nobody looks at, and the other does not.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    t = T.alloc_buffer((16,), "float32")
    for i in range(16):
        t[i] = T.exp(A[i])
    for i in range(16):
        C[i] = T.float32(7)
    for i in range(16):
        C[i] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    u = T.alloc_buffer((16,), "float32")
    for i in range(16):
        u[i] = T.sqrt(A[i])
    for i in range(16):
        C[i] = A[i]
