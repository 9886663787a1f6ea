# Two cases in two rows of a temporary, the second read backwards.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    t = T.alloc_buffer((16,), "float32")
    s = T.alloc_buffer((1,), "float32")
    for i in range(16):
        t[i] = T.if_then_else(i < 8, T.Cast("float32", i * 3), T.Cast("float32", 100 - i) * A[i])
    s[0] = T.float32(0)
    for i in range(16):
        s[0] = s[0] + t[i]
    for i in range(16):
        C[i] = s[0]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    t = T.alloc_buffer((2, 8), "float32")
    s = T.alloc_buffer((1,), "float32")
    for j, i in T.grid(2, 8):
        t[1 - j, i] = T.if_then_else(j == 0, A[15 - i] * T.Cast("float32", 85 + i), T.Cast("float32", i * 3))
    s[0] = T.float32(0)
    for i in range(8):
        s[0] = s[0] + t[0, i]
    for i in range(8):
        s[0] = s[0] + t[1, 7 - i]
    for i in range(16):
        C[i] = s[0]
