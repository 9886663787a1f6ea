# A recurrence that reads nothing but itself, in a register, two loops for one.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        C[i] = T.float32(0)
        for k in range(12):
            C[i] = C[i] * T.float32(0.5) + T.float32(1)


@T.prim_func(s_tir=True)
def after(C: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    a = T.alloc_buffer((1,), "float32", scope="local")
    for i in range(16):
        a[0] = T.float32(0)
        for ko, ki in T.grid(3, 4):
            a[0] = a[0] * T.float32(0.5) + T.float32(1)
        C[i] = a[0]
