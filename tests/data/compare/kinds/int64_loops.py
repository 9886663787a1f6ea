# Loops and indices of 64 bits against those of 32.
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
    for i in T.serial(T.int64(16)):
        for j in T.serial(T.int64(8)):
            B[i, j] = A[i, j] * T.float32(2)
