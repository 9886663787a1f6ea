# Tiles that overlap compute some values twice.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((18,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    t = T.alloc_buffer((18,), "float32")
    for i in range(18):
        t[i] = T.exp(A[i])
    for i in range(16):
        C[i] = t[i] + t[i+1] + t[i+2]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((18,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    t = T.alloc_buffer((6,), "float32")
    for io in range(4):
        for ii in range(6):
            t[ii] = T.exp(A[io*4 + ii])
        for ii in range(4):
            C[io*4 + ii] = t[ii] + t[ii+1] + t[ii+2]
