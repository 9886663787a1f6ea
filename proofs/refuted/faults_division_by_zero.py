# about: a guard against division by zero is dropped
# clause: faults
# expect: refuted
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "int32"), D: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[i] = T.if_then_else(D[i] > 0, A[i] // D[i], 0)


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "int32"), D: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[i] = T.Select(D[i] > 0, A[i] // D[i], 0)
