# Two steps of a stencil, from one row of a parameter to the other and back, with the second written out.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((2, 16), "float32")):
    T.func_attr({"tirx.noalias": True})
    for t in range(2):
        for i in range(14):
            A[(t + 1) % 2, i + 1] = A[t % 2, i] + A[t % 2, i + 2]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((2, 16), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        A[1, i + 1] = A[0, i] + A[0, i + 2]
    for i in range(1, 15):
        A[0, i] = A[1, i + 1] + A[1, i - 1]
