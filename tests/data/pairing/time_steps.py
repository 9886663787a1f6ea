# Steps in time written out, one of them backwards.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((3, 16), "float32")):
    T.func_attr({"tirx.noalias": True})
    for t in range(2):
        for i in range(14):
            A[t + 1, i + 1] = (A[t, i] + A[t, i + 1] + A[t, i + 2]) * T.float32(0.33)


@T.prim_func(s_tir=True)
def after(A: T.Buffer((3, 16), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        A[1, i + 1] = (A[0, i] + A[0, i + 1] + A[0, i + 2]) * T.float32(0.33)
    for i in range(14):
        A[2, 14 - i] = (A[1, 13 - i] + A[1, 14 - i] + A[1, 15 - i]) * T.float32(0.33)
