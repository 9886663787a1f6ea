# about: no size is what callers vouch for, so that everything holds of every call
# clause: vacuity
# expect: vacuous
# where: n*n == 2
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), n: T.int32):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[i] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), n: T.int32):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[i] = A[i] + 1
