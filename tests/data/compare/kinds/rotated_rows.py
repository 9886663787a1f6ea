# The rows of the result lie rotated by one.
# expect: proved
# layout: B=lambda i, j: [(i + 1) % 16, j]
# unaided: refuted
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 8):
        B[i, j] = A[i, j] * T.float32(2)


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 8):
        B[(i + 1) % 16, j] = A[i, j] * T.float32(2)
