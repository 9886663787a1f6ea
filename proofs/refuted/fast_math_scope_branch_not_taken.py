# about: fast-math assumptions restrict what the old program computes, and it never looks at an element where data tells it not to
# clause: fast-math-scope
# expect: refuted
# theta: 0 -> none
# theta: 1 -> 0: lambda i: [i]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "float32"), D: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        if D[i] > 0:
            B[i] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "float32"), D: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[i] = B[i] + A[i] * T.float32(0)
    for i in range(8):
        if D[i] > 0:
            B[i] = A[i]
