# about: a NaN in the second operand of max wins, in the first it loses
# clause: values
# expect: refuted
# strictness: ieee
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[i] = T.max(A[i], D[i])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[i] = T.max(D[i], A[i])
