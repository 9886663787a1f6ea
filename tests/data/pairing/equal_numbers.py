# Four stores of one number against a loop.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    t = T.alloc_buffer((4,), "float32")
    t[0] = T.float32(1)
    t[1] = T.float32(1)
    t[2] = T.float32(1)
    t[3] = T.float32(1)
    for i in range(16):
        C[i] = t[i % 4] + T.float32(2)


@T.prim_func(s_tir=True)
def after(C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    t = T.alloc_buffer((4,), "float32")
    for j in range(4):
        t[j] = T.float32(1)
    for i in range(16):
        C[i] = t[i % 4] + T.float32(2)
