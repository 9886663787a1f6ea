# A sum and a maximum of each row in the cells of one temporary.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(X: T.Buffer((4, 16), "float32"), Y: T.Buffer((4,), "float32"), Z: T.Buffer((4,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for r in range(4):
        Y[r] = T.float32(0)
        for i in range(16):
            Y[r] = Y[r] + X[r, i]
    for r in range(4):
        Z[r] = T.min_value("float32")
        for i in range(16):
            Z[r] = T.max(Z[r], X[r, i])


@T.prim_func(s_tir=True)
def after(X: T.Buffer((4, 16), "float32"), Y: T.Buffer((4,), "float32"), Z: T.Buffer((4,), "float32")):
    T.func_attr({"tirx.noalias": True})
    acc = T.sblock_alloc_buffer((2,), "float32")
    for r in range(4):
        acc[0] = T.float32(0)
        acc[1] = T.min_value("float32")
        for i in range(16):
            acc[0] = acc[0] + X[r, i]
            acc[1] = T.max(acc[1], X[r, i])
        Y[r] = acc[0]
        Z[r] = acc[1]
