# Two cases that read two temporaries, against one that has both.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    p = T.alloc_buffer((8,), "float32")
    q = T.alloc_buffer((8,), "float32")
    for i in range(8):
        p[i] = T.exp(A[i])
    for i in range(8):
        q[i] = T.exp(B[i])
    for i in range(16):
        C[i] = T.if_then_else(i < 8, p[i % 8] * T.float32(2), q[i % 8] + T.float32(1))


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    p = T.alloc_buffer((16,), "float32")
    for i in range(8):
        p[15 - i] = T.exp(A[i])
    for i in range(8):
        p[i] = T.exp(B[i])
    for i in range(16):
        C[15 - i] = T.if_then_else(i < 8, p[7 - i] + T.float32(1), p[i] * T.float32(2))
