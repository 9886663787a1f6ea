# All steps kept against two buffers in turn.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    b = T.alloc_buffer((5, 16), "float32")
    for i in range(16):
        b[0, i] = A[i]
    for s, i in T.grid(4, 16):
        b[s + 1, i] = b[s, i] + b[s, (i + 1) % 16]
    for i in range(16):
        C[i] = b[4, i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    b = T.alloc_buffer((2, 16), "float32")
    for i in range(16):
        b[0, i] = A[i]
    for s in range(4):
        for i in range(16):
            b[(s + 1) % 2, i] = b[s % 2, i] + b[s % 2, (i + 1) % 16]
    for i in range(16):
        C[i] = b[0, i]
