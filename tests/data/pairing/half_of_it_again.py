# Half of the cells are written again, against a choice.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        B[i] = A[i]
    for i in range(8):
        B[i] = B[i] * T.float32(2)


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        if i < 8:
            B[i] = A[i] * T.float32(2)
        else:
            B[i] = A[i]
