# Loops of single elements before, four lanes at once after, in another layout.
# expect: proved
# layout: B=lambda i, j: [j//4, i, j%4]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 8):
        B[i, j] = T.max(A[i, j], T.float32(0))


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 8), "float32"), B: T.Buffer((2, 16, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    for jo, i in T.grid(2, 16):
        B[jo, i, 0:4] = T.max(A[i, jo*4:jo*4 + 4], T.Broadcast(T.float32(0), 4))
