# Steps that overwrite a temporary, inside and outside the loop over its cells.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    t = T.alloc_buffer((16,), "float32")
    for i in range(16):
        t[i] = A[i]
    for s, i in T.grid(4, 16):
        t[i] = T.exp(t[i]) + T.float32(1)
    for i in range(16):
        C[i] = t[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        C[i] = A[i]
        for s in T.unroll(4):
            C[i] = T.float32(1) + T.exp(C[i])
