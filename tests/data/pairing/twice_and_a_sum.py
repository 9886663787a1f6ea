# A product with two against a sum: values of different forms, which a solver finds equal.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        C[i] = A[i] * 2


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(4, 4):
        C[i*4+j] = A[i*4+j] + A[i*4+j]
