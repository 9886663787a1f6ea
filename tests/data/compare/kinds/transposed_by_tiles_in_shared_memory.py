# A transposition that goes through tiles of 4 by 4.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 8), "float32"), B: T.Buffer((8, 16), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(8, 16):
        B[i, j] = A[j, i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 8), "float32"), B: T.Buffer((8, 16), "float32")):
    T.func_attr({"tirx.noalias": True})
    tile = T.alloc_buffer((4, 4), "float32", scope="shared")
    for io, jo in T.grid(2, 4):
        for a, b in T.grid(4, 4):
            tile[a, b] = A[jo*4 + a, io*4 + b]
        for a, b in T.grid(4, 4):
            B[io*4 + a, jo*4 + b] = tile[b, a]
