# about: lanes of a vector loop read what other lanes write
# clause: races
# expect: refuted
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((9,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        A[i + 1] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((9,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in T.vectorized(8):
        A[i + 1] = A[i]
