# Two cases, each with other index arithmetic in its value, in another order.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    t = T.alloc_buffer((16,), "float32")
    for i in range(16):
        t[i] = T.if_then_else(i < 8, T.Cast("float32", i * 3), T.Cast("float32", 100 - i) * A[i])
    for i in range(16):
        C[i] = T.sqrt(t[i])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    t = T.alloc_buffer((16,), "float32")
    for i in range(16):
        t[i] = T.if_then_else(i >= 8, T.Cast("float32", i * 3 - 24), T.Cast("float32", 85 + i) * A[15 - i])
    for i in range(16):
        C[i] = T.sqrt(t[T.if_then_else(i < 8, i + 8, 15 - i)])
