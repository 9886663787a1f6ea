# Bounds from both sides in two stages, operands the other way round.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        B[i] = T.min(T.max(A[i], T.float32(0)), T.float32(6))


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    t = T.alloc_buffer((16,), "float32")
    for i in range(16):
        t[i] = T.max(T.float32(0), A[i])
    for i in range(16):
        B[i] = T.min(T.float32(6), t[i])
