# Vectors with a tail that is masked on the way in and cut on the way out.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((30,), "float32"), C: T.Buffer((30,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(30):
        C[i] = T.exp(A[i])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((30,), "float32"), C: T.Buffer((30,), "float32")):
    T.func_attr({"tirx.noalias": True})
    r = T.alloc_buffer((8,), "float32", scope="local")
    for o in range(4):
        for v in T.vectorized(8):
            r[v] = T.if_then_else(o*8 + v < 30, A[o*8 + v], T.float32(0))
        for v in range(8):
            r[v] = T.exp(r[v])
        for v in range(8):
            if o*8 + v < 30:
                C[o*8 + v] = r[v]
