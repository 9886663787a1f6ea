# about: the new program assumes that an element is 0, which nobody promised
# clause: assumptions
# expect: refuted
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "int32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    B[0] = A[0] + A[1]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "int32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    T.evaluate(T.assume(A[0] == 0))
    B[0] = A[0] + A[1]
