# about: what a guard kept from being overwritten is overwritten
# clause: lost-source
# expect: refuted
# theta: 0 -> 0: lambda i: [i] where i < 14
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        if i < 14:
            B[i] = A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        B[i] = A[i]
