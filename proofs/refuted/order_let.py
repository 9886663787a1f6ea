# about: a value is loaded where it is used, after its cell was overwritten
# clause: order
# expect: refuted
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(7):
        x: T.let[T.float32] = A[i]
        A[i] = T.float32(0)
        B[i] = x


@T.prim_func(s_tir=True)
def after(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(7):
        A[i] = T.float32(0)
        B[i] = A[i]
