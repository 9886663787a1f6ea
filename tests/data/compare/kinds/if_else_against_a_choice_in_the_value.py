# Two stores under `if` and `else` against one store of a choice.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 8):
        if j < 3:
            B[i, j] = A[i, j] * T.float32(2)
        else:
            B[i, j] = A[i, j] + T.float32(1)


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 8):
        B[i, j] = T.if_then_else(3 <= j, T.float32(1) + A[i, j], T.float32(2) * A[i, j])
