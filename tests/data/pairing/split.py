# One parameter split into two outputs: two loops against a condition.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((10, 8), "float32"), C: T.Buffer((4, 8), "float32"), D: T.Buffer((6, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(4, 8):
        C[i, j] = T.exp(A[i, j])
    for i, j in T.grid(6, 8):
        D[i, j] = T.exp(A[i + 4, j])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((10, 8), "float32"), C: T.Buffer((4, 8), "float32"), D: T.Buffer((6, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(10, 8):
        if i < 4:
            C[i, j] = T.exp(A[i, j])
        else:
            D[i - 4, j] = T.exp(A[i, j])
