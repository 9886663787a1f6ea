# about: no size is what both programs assume
# clause: vacuity
# expect: vacuous
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), n: T.int32):
    T.func_attr({"tirx.noalias": True})
    T.evaluate(T.assume(n * n == 2))
    for i in range(8):
        B[i] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), n: T.int32):
    T.func_attr({"tirx.noalias": True})
    T.evaluate(T.assume(n * n == 2))
    for i in range(8):
        B[i] = A[i] + 1
