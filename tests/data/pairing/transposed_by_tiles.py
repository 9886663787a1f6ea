# A transpose by way of a tile that is transposed itself.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((32, 32), "float32"), C: T.Buffer((32, 32), "float32")):
    T.func_attr({"tirx.noalias": True})
    t = T.alloc_buffer((32, 32), "float32")
    for i, j in T.grid(32, 32):
        t[i, j] = T.max(A[i, j], T.float32(0))
    for i, j in T.grid(32, 32):
        C[j, i] = t[i, j] * t[i, j]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((32, 32), "float32"), C: T.Buffer((32, 32), "float32")):
    T.func_attr({"tirx.noalias": True})
    t = T.alloc_buffer((8, 8), "float32")
    for io, jo in T.grid(4, 4):
        for ii, ji in T.grid(8, 8):
            t[ji, ii] = T.max(A[io*8 + ii, jo*8 + ji], T.float32(0))
        for ji, ii in T.grid(8, 8):
            C[jo*8 + ji, io*8 + ii] = t[ji, ii] * t[ji, ii]
