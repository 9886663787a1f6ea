# about: a quotient of data in an index makes no difference to the cell, but has no result where the data is 0
# clause: faults
# expect: refuted
# theta: 0 -> 0: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[i] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[i] = A[i + 0 * (7 // A[i])]
