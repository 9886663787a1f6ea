# Three steps in place against one expression.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        C[i] = A[i]
    for s, i in T.grid(3, 16):
        C[i] = T.exp(C[i]) + T.float32(1)


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        C[i] = T.exp(T.exp(T.exp(A[i]) + T.float32(1)) + T.float32(1)) + T.float32(1)
