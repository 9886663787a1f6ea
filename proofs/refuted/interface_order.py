# about: two parameters of the same type change places
# clause: interface
# expect: unknown
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((4,), "float32"), D: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(4):
        B[i] = A[i] - D[i]


@T.prim_func(s_tir=True)
def after(D: T.Buffer((4,), "float32"), A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(4):
        B[i] = A[i] - D[i]
