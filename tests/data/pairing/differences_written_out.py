# Differences that several sums use, against all of it written out under a condition on the loop.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4,), "float32"), C: T.Buffer((2,), "float32")):
    T.func_attr({"tirx.noalias": True})
    d = T.alloc_buffer((4,), "float32")
    d[0] = A[0] - A[2]
    d[1] = A[1] + A[2]
    d[2] = A[2] - A[1]
    d[3] = A[1] - A[3]
    C[0] = d[0] + d[1] + d[2]
    C[1] = d[1] - d[2] - d[3]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((4,), "float32"), C: T.Buffer((2,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(2):
        if i == 0:
            C[i] = (A[0] - A[2]) + (A[2] + A[1]) + (A[2] - A[1])
        else:
            C[i] = (A[1] + A[2]) - (A[2] - A[1]) - (A[1] - A[3])
