# Values made of coordinates only, by way of a table for each axis.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(C: T.Buffer((8, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(8, 4):
        C[i, j] = T.Cast("float32", i) * T.float32(0.5) + T.Cast("float32", j)


@T.prim_func(s_tir=True)
def after(C: T.Buffer((8, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    x = T.alloc_buffer((8,), "float32")
    y = T.alloc_buffer((4,), "float32")
    for i in range(8):
        x[i] = T.Cast("float32", i) * T.float32(0.5)
    for j in range(4):
        y[3 - j] = T.Cast("float32", 3 - j)
    for j, i in T.grid(4, 8):
        C[i, j] = y[j] + x[i]
