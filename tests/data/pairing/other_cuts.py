# Three cases against two loops that cut elsewhere.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((30,), "float32"), B: T.Buffer((30,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(30):
        if i < 10:
            B[i] = A[i]
        else:
            if i < 20:
                B[i] = A[i] * T.float32(2)
            else:
                B[i] = A[i] * T.float32(3)


@T.prim_func(s_tir=True)
def after(A: T.Buffer((30,), "float32"), B: T.Buffer((30,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for j in range(10):
        B[j + 20] = T.float32(3) * A[j + 20]
    for j in range(20):
        B[j] = T.if_then_else(j >= 10, A[j] * T.float32(2), A[j])
