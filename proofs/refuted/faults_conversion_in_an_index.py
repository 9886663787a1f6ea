# about: an index has a conversion of an infinity, times 0: it traps
# expect: refuted
# clause: faults
# theta: 0 -> 0: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(4):
        B[i] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(4):
        B[i + T.Cast("int32", T.infinity("float32")) * 0] = A[i]
