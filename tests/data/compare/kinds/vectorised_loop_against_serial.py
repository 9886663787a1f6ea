# A loop that is marked as a vector loop against a serial one.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 8):
        B[i, j] = T.exp(A[i, j])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in T.parallel(16):
        for jo in T.unroll(2):
            for ji in T.vectorized(4):
                B[i, jo*4 + ji] = T.exp(A[i, jo*4 + ji])
