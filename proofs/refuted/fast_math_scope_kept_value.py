# about: fast-math assumptions restrict what the old program computes, and what a store that does not happen leaves in place is none of that
# clause: fast-math-scope
# expect: refuted
# theta: 0 -> 0: lambda i: [i]
# theta: 1 -> none
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
        if D[i] > 0:
            B[i] = A[i]
    for i in range(8):
        B[i] = T.max(B[i], -T.infinity("float32"))
