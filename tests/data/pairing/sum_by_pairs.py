# A sum by pairs, with the pairs in a temporary.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 4), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        C[i] = (A[i, 0] + A[i, 1]) + (A[i, 2] + A[i, 3])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 4), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    s = T.alloc_buffer((2,), "float32")
    for i in range(16):
        for k in range(2):
            s[k] = A[i, 2*k + 1] + A[i, 2*k]
        C[i] = s[1] + s[0]
