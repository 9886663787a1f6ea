# Each partial sum begins with an element that is added again.
# expect: refuted
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(X: T.Buffer((4, 64), "float32"), Y: T.Buffer((4,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for r in range(4):
        Y[r] = T.float32(0)
        for i in range(64):
            Y[r] = Y[r] + X[r, i]


@T.prim_func(s_tir=True)
def after(X: T.Buffer((4, 64), "float32"), Y: T.Buffer((4,), "float32")):
    T.func_attr({"tirx.noalias": True})
    Q = T.sblock_alloc_buffer((8,), "float32")
    for r in range(4):
        for o in range(8):
            Q[o] = X[r, o]
        for i in range(8):
            for o in range(8):
                Q[o] = Q[o] + X[r, i * 8 + o]
        Y[r] = T.float32(0)
        for o in range(8):
            Y[r] = Y[r] + Q[o]
