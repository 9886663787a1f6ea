# The older dialect, a block, and a value with a name.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 8):
        B[i, j] = T.exp(A[i, j]) * T.float32(2) + T.exp(A[i, j])


@T.prim_func
def after(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for x, y in T.grid(16, 8):
        with T.block("b"):
            vx, vy = T.axis.remap("SS", [x, y])
            e: T.float32 = T.exp(A[vx, vy])
            B[vx, vy] = e * T.float32(2) + e
