# The sum goes on from what the output held before: no init on either side.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 12), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, k in T.grid(16, 12):
        B[i] = B[i] + A[i, k]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 12), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    acc = T.alloc_buffer((1,), "float32", scope="local")
    for i in range(16):
        acc[0] = B[i]
        for ko, ki in T.grid(3, 4):
            acc[0] = acc[0] + A[i, ko*4 + ki]
        B[i] = acc[0]
