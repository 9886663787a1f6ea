# Names for indices and for a value, which the other program writes out.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 8):
        twice: T.float32 = A[i, j] + A[i, j]
        B[i, j] = twice * twice


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for f in range(128):
        i: T.int32 = f // 8
        j: T.int32 = f % 8
        B[i, j] = (A[i, j] + A[i, j]) * (A[i, j] + A[i, j])
