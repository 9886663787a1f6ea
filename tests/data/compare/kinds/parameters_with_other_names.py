# The same parameters under other names: they belong together by their places.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 8):
        B[i, j] = A[i, j] * T.float32(2)


@T.prim_func(s_tir=True)
def after(data: T.Buffer((16, 8), "float32"), out: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for f in range(128):
        out[f // 8, f % 8] = data[f // 8, f % 8] * T.float32(2)
