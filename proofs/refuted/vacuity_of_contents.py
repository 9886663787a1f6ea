# about: no data is both below and above zero, so that anything may be stored
# clause: vacuity
# expect: vacuous
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        T.evaluate(T.assume(A[i] < 0))
    for i in range(8):
        T.evaluate(T.assume(A[i] > 0))
    for i in range(8):
        B[i] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        T.evaluate(T.assume(A[i] < 0))
    for i in range(8):
        T.evaluate(T.assume(A[i] > 0))
    for i in range(8):
        B[i] = A[i] + 1
