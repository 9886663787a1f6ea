# about: a sum of half-precision numbers is rounded once instead of at each step
# clause: values
# expect: refuted
# strictness: ieee
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((3,), "float16"), B: T.Buffer((1,), "float16")):
    T.func_attr({"tirx.noalias": True})
    B[0] = A[0] + A[1] + A[2]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((3,), "float16"), B: T.Buffer((1,), "float16")):
    T.func_attr({"tirx.noalias": True})
    B[0] = T.Cast("float16", T.Cast("float32", A[0]) + T.Cast("float32", A[1]) + T.Cast("float32", A[2]))
