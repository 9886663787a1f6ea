# While one row is used, the next is loaded into the other half of a buffer of two rows.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 8):
        B[i, j] = A[i, j] * T.float32(2)


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    buf = T.alloc_buffer((2, 8), "float32")
    for j in range(8):
        buf[0, j] = A[0, j]
    for i in range(16):
        for j in range(8):
            B[i, j] = buf[i % 2, j] * T.float32(2)
        if i < 15:
            for j in range(8):
                buf[(i + 1) % 2, j] = A[i + 1, j]
