# about: of three loads of one cell two never happen together; the third agrees with one of them only
# clause: order
# expect: refuted
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        x = T.if_then_else(i < 4, A[i], 0)
        y = T.if_then_else(i >= 4, A[i], 0)
        z = A[i]
        if i >= 4:
            A[i] = A[i] + 1
        B[i] = x + y * 2 + z


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        x = T.if_then_else(i < 4, A[i], 0)
        y = T.if_then_else(i >= 4, A[i], 0)
        if i >= 4:
            A[i] = A[i] + 1
        B[i] = x + y * 2 + A[i]
