# about: partial sums that begin with one
# clause: partial-start
# expect: refuted
# theta: 0 -> none
# theta: 1 -> 1: lambda o, i: [o*8 + i]
# theta: 2 -> 0: lambda: []
# theta: 3 -> none
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(X: T.Buffer((64,), "int32"), Y: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    Y[0] = 0
    for i in range(64):
        Y[0] = Y[0] + X[i]


@T.prim_func(s_tir=True)
def after(X: T.Buffer((64,), "int32"), Y: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    Q = T.alloc_buffer((8,), "int32")
    for o in range(8):
        Q[o] = 1
        for i in range(8):
            Q[o] = Q[o] + X[o * 8 + i]
    Y[0] = 0
    for o in range(8):
        Y[0] = Y[0] + Q[o]
