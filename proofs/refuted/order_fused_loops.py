# about: two loops are merged, and the second reads what the first writes later
# clause: order
# expect: refuted
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        C[i] = A[i]
    for i in range(8):
        B[i] = C[7 - i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        C[i] = A[i]
        B[i] = C[7 - i]
