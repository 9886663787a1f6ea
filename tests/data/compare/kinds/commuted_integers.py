# Sums, products, minima and maxima of integers commute without exception.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 8), "int32"), B: T.Buffer((16, 8), "int32"), C: T.Buffer((16, 8), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 8):
        C[i, j] = T.max(A[i, j] * B[i, j], T.min(A[i, j], B[i, j])) + A[i, j]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 8), "int32"), B: T.Buffer((16, 8), "int32"), C: T.Buffer((16, 8), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 8):
        C[i, j] = A[i, j] + T.max(T.min(B[i, j], A[i, j]), B[i, j] * A[i, j])
