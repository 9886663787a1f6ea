# about: a store that one input alone makes happen, in a parallel loop
# clause: races
# expect: refuted
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "int32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        if A[i] > 0:
            B[0] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "int32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in T.parallel(8):
        if A[i] > 0:
            B[0] = A[i]
