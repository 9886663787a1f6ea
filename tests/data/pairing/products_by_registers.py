# Factors are loaded into registers four by four, and the sum is written out.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    C[0] = T.float32(0)
    for k in range(8):
        C[0] = C[0] + A[k] * B[k]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    acc = T.alloc_buffer((1,), "float32", scope="local")
    a = T.alloc_buffer((4,), "float32", scope="local")
    b = T.alloc_buffer((4,), "float32", scope="local")
    acc[0] = T.float32(0)
    for ko in range(2):
        for ki in range(4):
            a[ki] = A[ko*4 + ki]
            b[ki] = B[ko*4 + ki]
        acc[0] = acc[0] + a[0] * b[0]
        acc[0] = acc[0] + a[1] * b[1]
        acc[0] = acc[0] + b[2] * a[2]
        acc[0] = acc[0] + a[3] * b[3]
    C[0] = acc[0]
