# The largest element and its place: updates under a condition on data against choices.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 8), "float32"), V: T.Buffer((16,), "float32"), I: T.Buffer((16,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        V[i] = T.min_value("float32")
        I[i] = -1
        for k in range(8):
            if A[i, k] > V[i]:
                I[i] = k
            if A[i, k] > V[i]:
                V[i] = A[i, k]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 8), "float32"), V: T.Buffer((16,), "float32"), I: T.Buffer((16,), "int32")):
    T.func_attr({"tirx.noalias": True})
    v = T.alloc_buffer((1,), "float32", scope="local")
    x = T.alloc_buffer((1,), "int32", scope="local")
    for i in range(16):
        v[0] = T.min_value("float32")
        x[0] = -1
        for k in range(8):
            x[0] = T.Select(A[i, k] > v[0], k, x[0])
            v[0] = T.Select(v[0] < A[i, k], A[i, k], v[0])
        V[i] = v[0]
        I[i] = x[0]
