# A loop against stores one by one, each value by way of a temporary.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
    T.func_attr({"tirx.noalias": True})
    s = T.alloc_buffer((4,), "float32")
    t = T.alloc_buffer((4,), "float32")
    for i in range(4):
        s[i] = T.exp(A[i])
    for i in range(4):
        t[i] = T.sqrt(s[i])
    for i in range(4):
        C[i] = t[i] + s[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
    T.func_attr({"tirx.noalias": True})
    s = T.alloc_buffer((4,), "float32")
    t = T.alloc_buffer((4,), "float32")
    s[0] = T.exp(A[0])
    s[1] = T.exp(A[1])
    s[2] = T.exp(A[2])
    s[3] = T.exp(A[3])
    t[0] = T.sqrt(s[0])
    t[1] = T.sqrt(s[1])
    t[2] = T.sqrt(s[2])
    t[3] = T.sqrt(s[3])
    for i in range(4):
        C[i] = t[i] + s[i]
