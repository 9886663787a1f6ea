# The parameter is both read and written: each element is doubled where it lies, in a tiled order.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 8):
        A[i, j] = A[i, j] * T.float32(2)


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for jo, i, ji in T.grid(2, 16, 4):
        A[i, jo*4 + ji] = A[i, jo*4 + ji] * T.float32(2)
